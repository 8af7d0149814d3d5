"""The whole agent on one page: topic -> turns -> Answered.

A turn is rewritten, the personal statements that matter are chosen, passages are searched and read, and an answer is
built from them. Each step is a plain function that is handed all it may see; none keeps anything. What a manual or an
only-response run is handed instead of finding it stands in `Given`.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import prompts
from agent.llm.none import NoModel
from agent.llm.seam import LLM, Conversation, unheard
from agent.ptkb import choose_statements
from agent.respond import respond
from agent.rewrite import rewrite
from agent.select import said
from indexes.vectors import Embed
from schemas.errors import ModelError
from schemas.records import Answered, Given, Hit, Message, Passage, Plan, Query, Statement, Topic, Turn

log = logging.getLogger("convagent")
NOTHING = Given()
NOT_GIVEN: Mapping[str, Given] = MappingProxyType({})
NOT_DONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tools:
    """What a turn is answered with."""

    llm: LLM
    search: Callable[[Query], tuple[Hit, ...]]
    read: Callable[[Sequence[Hit]], tuple[Passage, ...]]
    plan: Plan = Plan()
    embed: Embed | None = None  # texts to vectors, where there is an embedding model
    instead: LLM = field(default_factory=lambda: NoModel(unheard))  # answers the turns at which `llm` fails


def answer(
    turn: Turn, heard: Sequence[Message], ptkb: Sequence[Statement], tools: Tools, given: Given = NOTHING
) -> Answered:
    """Everything that happens to one turn."""
    plan = tools.plan
    system = prompts.render("system").instruction
    conversation = Conversation(system, (*heard, Message("user", given.resolved or turn.utterance)))

    query = rewrite(conversation, tools.llm, plan, given.resolved) if plan.parts.rewrite else Query(turn.utterance)
    personal = choose_statements(conversation, query, ptkb, tools) if given.statements is None else given.statements
    hits = given.hits if given.hits is not None else tools.search(query)
    passages = tools.read(hits[: plan.read])
    responses = respond(query, conversation, personal, passages, tools)
    return Answered(turn.id, query, personal, hits, passages, responses)


def answer_anyway(
    turn: Turn, heard: Sequence[Message], ptkb: Sequence[Statement], tools: Tools, given: Given = NOTHING
) -> Answered:
    """The same; where the model fails, the whole turn is answered without it, and says so."""
    try:
        return answer(turn, heard, ptkb, tools, given)
    except ModelError as error:
        log.warning("turn %s is answered without the model: %s", turn.id, error.what)
        answered = answer(turn, heard, ptkb, replace(tools, llm=tools.instead), given)
        return replace(answered, without_model=error.what)


def answer_topic(
    topic: Topic, tools: Tools, given: Mapping[str, Given] = NOT_GIVEN, done: Mapping[str, str] = NOT_DONE
) -> Iterator[Answered]:
    """The turns of a topic in order, save those that are `done` already (turn id to reply)."""
    own: tuple[Message, ...] = ()
    for turn in topic.turns:
        heard = own if turn.heard is None else turn.heard  # the track's conversation where it gives one, else ours
        handed = given.get(turn.id, NOTHING)
        reply = done.get(turn.id)
        if reply is None:
            finished = answer_anyway(turn, heard, topic.ptkb, tools, handed)
            yield finished
            reply = finished.response.text
        own = (*own, Message("user", handed.resolved or turn.utterance), Message("assistant", said(reply)))
