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
from agent.models.no_model import NoModel
from agent.models.protocol import Conversation, LanguageModel, ignore_call
from agent.turn.answer_generation import generate_responses
from agent.turn.extractive_answer import strip_not_found
from agent.turn.query_rewriting import rewrite_query
from agent.turn.statement_selection import select_statements
from indexes.ranking.vectors import Embed
from schemas.errors import ModelError
from schemas.records import Hit, Message, Passage, Plan, Provided, Query, Statement, Topic, Turn, TurnResult

log = logging.getLogger("convagent")
NOTHING = Provided()
NOTHING_PROVIDED: Mapping[str, Provided] = MappingProxyType({})
NO_REPLIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tools:
    """What a turn is answered with."""

    llm: LanguageModel
    search: Callable[[Query], tuple[Hit, ...]]
    read: Callable[[Sequence[Hit]], tuple[Passage, ...]]
    plan: Plan = Plan()
    embed: Embed | None = None  # texts to vectors, where there is an embedding model
    fallback_llm: LanguageModel = field(
        default_factory=lambda: NoModel(ignore_call)
    )  # answers the turns at which `llm` fails


def answer_turn(
    turn: Turn, history: Sequence[Message], ptkb: Sequence[Statement], tools: Tools, given: Provided = NOTHING
) -> TurnResult:
    """Everything that happens to one turn."""
    plan = tools.plan
    system = prompts.render("system").instruction
    conversation = Conversation(system, (*history, Message("user", given.human_rewrite or turn.utterance)))

    query = (
        rewrite_query(conversation, tools.llm, plan, given.human_rewrite)
        if plan.parts.rewrite
        else Query(turn.utterance)
    )
    selected_statements = (
        select_statements(conversation, query, ptkb, tools) if given.statements is None else given.statements
    )
    hits = given.hits if given.hits is not None else tools.search(query)
    passages = tools.read(hits[: plan.reading_depth])
    responses = generate_responses(query, conversation, selected_statements, passages, tools)
    return TurnResult(turn.id, query, selected_statements, hits, passages, responses)


def answer_turn_or_fall_back(
    turn: Turn, history: Sequence[Message], ptkb: Sequence[Statement], tools: Tools, given: Provided = NOTHING
) -> TurnResult:
    """The same; where the model fails, the whole turn is answered without it, and says so."""
    try:
        return answer_turn(turn, history, ptkb, tools, given)
    except ModelError as error:
        log.warning("turn %s is answered without the model: %s", turn.id, error.what)
        answered = answer_turn(turn, history, ptkb, replace(tools, llm=tools.fallback_llm), given)
        return replace(answered, without_model=error.what)


def answer_topic(
    topic: Topic, tools: Tools, given: Mapping[str, Provided] = NOTHING_PROVIDED, done: Mapping[str, str] = NO_REPLIES
) -> Iterator[TurnResult]:
    """The turns of a topic in order, save those that are `done` already (turn id to reply)."""
    own: tuple[Message, ...] = ()
    for turn in topic.turns:
        history = (
            own if turn.history is None else turn.history
        )  # the track's conversation where it gives one, else ours
        handed = given.get(turn.id, NOTHING)
        reply = done.get(turn.id)
        if reply is None:
            finished = answer_turn_or_fall_back(turn, history, topic.ptkb, tools, handed)
            yield finished
            reply = finished.response.text
        own = (
            *own,
            Message("user", handed.human_rewrite or turn.utterance),
            Message("assistant", strip_not_found(reply)),
        )
