"""Looking twice: the model sees what was found and may ask for something else. Off by default (docs/log.md)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

import prompts
from agent.llm.seam import Conversation, Task
from indexes.feedback import fused
from schemas.records import Hit, Query

if TYPE_CHECKING:
    from agent.flow import Tools

LOOKED_AT = 3  # passages that the model sees before it asks again


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
    reply = tools.llm.ask(conversation, Task("again", prompt.instruction, prompt.opening), Again).query.strip()
    return "" if reply in tried else reply
