"""Looking twice: the model judges what was found, or asks for something else. Both are off by default (docs/log.md)."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

import prompts
from agent.llm.seam import Conversation, Task
from indexes.feedback import fused, reciprocal_rank_fusion
from indexes.passages import strictly_decreasing
from schemas.errors import ModelReplyError
from schemas.records import Hit, Message, Query

if TYPE_CHECKING:
    from agent.flow import Tools

log = logging.getLogger("convagent")
LOOKED_AT = 3  # passages that the model sees before it asks again
JUDGED = 10  # passages that are put in another order


class Again(Struct):
    """What the model replies; an empty query says that it has found enough."""

    query: Annotated[str, Meta(max_length=200)] = ""


def search_again(conversation: Conversation, query: Query, hits: tuple[Hit, ...], tools: "Tools") -> tuple[Hit, ...]:
    """The hits of up to `plan.searches` searches, fused by their ranks. The model says when to stop."""
    lists, tried = [hits], [query.standalone]
    while hits and len(lists) < tools.plan.searches and (wanted := _wanted(conversation, lists[-1], tried, tools)):
        tried.append(wanted)
        lists.append(tools.search(Query(wanted), ()))
    return hits if len(lists) == 1 else fused(lists, tools.plan.searched)


def _wanted(conversation: Conversation, hits: Sequence[Hit], tried: Sequence[str], tools: "Tools") -> str:
    """Another query, or nothing."""
    prompt = prompts.render("again", passages=tools.read(hits[:LOOKED_AT]), tried=tried)
    try:
        reply = tools.llm.ask(conversation, Task("again", prompt.instruction, prompt.opening), Again).query.strip()
    except ModelReplyError as error:
        log.info("%s: what was found has to do", error)
        return ""
    return "" if reply in tried else reply


def rerank(query: Query, hits: tuple[Hit, ...], tools: "Tools") -> tuple[Hit, ...]:
    """The first hits in the order of how likely each makes the question, fused with the order that they had."""
    if tools.plan.reranker == "none" or not hits:
        return hits
    top, rest = hits[:JUDGED], hits[JUDGED:]
    prompt = prompts.render("rerank")
    task = Task("rerank", prompt.instruction, prompt.opening)
    scored = [
        (tools.llm.score(Conversation("", (Message("user", passage.text),)), task, [query.standalone])[0], passage.id)
        for passage in tools.read(top)
    ]
    judged = [id for _, id in sorted(scored, key=lambda pair: -pair[0])]
    order = reciprocal_rank_fusion([[hit.id for hit in top], judged])
    ordered = [(id, hit.score) for (id, _), hit in zip(order, top, strict=True)]  # the places change, the scores stay
    return strictly_decreasing([*ordered, *((hit.id, hit.score) for hit in rest)])
