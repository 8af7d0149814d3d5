"""The whole agent on one page: a topic's turns in, their results out. Start reading here.

A turn is rewritten, the personal statements that matter are selected, passages are retrieved and read, what the person
must avoid is left out of them, and an answer is built from the rest. Each step is a plain function that is handed all
it may see; none keeps anything. What a manual or an only-response run is given instead of finding it is in `Provided`.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import prompts
from agent.models.no_model import NoModel
from agent.models.protocol import Conversation, LanguageModel, ignore_call
from agent.turn.clarification import complete_utterance
from agent.turn.interface_sentences import strip_not_found
from agent.turn.query_rewriting import rewrite_query
from agent.turn.safety.needs import find_needs
from agent.turn.safety.personal_answer import answer_for_person
from agent.turn.safety.review import is_harmless, review_passages
from agent.turn.statement_selection import select_statements
from agent.turn.whole_answer import answer_from_whole_documents, write_whole_answer
from agent.turn.writing.checked_answer import ResponseListener, Writer
from indexes.documents.collection import WholeDocuments
from indexes.ranking.vectors import Embedder
from schemas.errors import ModelError
from schemas.records import Hit, Message, Passage, Plan, Provided, Query, Statement, Topic, Turn, TurnResult

log = logging.getLogger("convagent")
NOTHING = Provided()
FURTHER = (4, 16, 64)  # times as many passages are read as shown, where a person must avoid something
NOTHING_PROVIDED: Mapping[str, Provided] = MappingProxyType({})
NO_REPLIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tools:
    """What a turn is answered with. Only this page takes it whole; each step gets what it needs of it."""

    llm: LanguageModel
    search: Callable[[Query], tuple[Hit, ...]]
    read: Callable[[Sequence[Hit]], tuple[Passage, ...]]
    plan: Plan = Plan()
    embedder: Embedder | None = None
    fallback_llm: LanguageModel = field(default_factory=lambda: NoModel(ignore_call))  # for turns at which `llm` fails
    show: ResponseListener | None = None  # is handed an answer that is written, as far as it was checked
    documents: WholeDocuments | None = None  # of a folder that is asked; an index has none


def answer_turn(
    turn: Turn, history: Sequence[Message], ptkb: Sequence[Statement], tools: Tools, given: Provided = NOTHING
) -> TurnResult:
    """Everything that happens to one turn."""
    llm, plan = tools.llm, tools.plan
    embedder = tools.embedder
    embed, encode_turn = (embedder.embed, embedder.encode_turn) if embedder else (None, None)
    before, utterance = complete_utterance(history, turn.utterance)
    last = Message("user", given.human_rewrite or utterance)
    conversation = Conversation(prompts.render("system").instruction, (*before, last))

    query = Query(utterance)
    if plan.parts.rewrite:
        query = replace(rewrite_query(conversation, llm, plan, given.human_rewrite, encode_turn), today=plan.today)
    statements = given.statements
    if statements is None:
        statements = select_statements(conversation, query, ptkb, llm, embed, plan)
    hits = tools.search(query) if given.hits is None else given.hits
    utterances = [message.text for message in conversation.messages if message.role == "user"]
    needs = find_needs(ptkb, statements, utterances)  # an allergy counts whether it was selected or not
    if tools.documents and given == NOTHING:
        whole = answer_from_whole_documents(query, hits, tools.documents, tools.search, embedder, plan.tuning.answer)
        if whole and is_harmless(whole.passages, needs, utterances):
            whole = write_whole_answer(whole, query, Writer(llm, tools.show, leads=False), plan)
            return TurnResult(turn.id, query, statements, hits, whole.passages, (whole.response,))
    if needs:  # what is sure of a dish is not what one may eat: the first passages alone
        plan = replace(plan, context_passages=min(plan.context_passages, plan.tuning.answer.first_passages))
    depths = FURTHER if needs and given.hits is None else (1,)
    for depth in depths:  # until enough is left that fits
        passages = tools.read(hits[: depth * plan.reading_depth])
        review = review_passages(passages, plan.reading_depth, needs, utterances)
        if len(review.kept) >= min(plan.reading_depth, len(passages)) or depth * plan.reading_depth >= len(hits):
            break
    answer = answer_for_person(query, statements, review, Writer(llm, tools.show), embedder, plan)
    used = answer.selected_statements if given.statements is None else statements
    return TurnResult(turn.id, query, used, hits, answer.passages, answer.responses)


def answer_turn_or_fall_back(
    turn: Turn, history: Sequence[Message], ptkb: Sequence[Statement], tools: Tools, given: Provided = NOTHING
) -> TurnResult:
    """The same; where the model fails, the whole turn is answered without it, and the result says so."""
    try:
        return answer_turn(turn, history, ptkb, tools, given)
    except ModelError as error:
        log.warning("turn %s is answered without the model: %s", turn.id, error.what)
        result = answer_turn(turn, history, ptkb, replace(tools, llm=tools.fallback_llm), given)
        return replace(result, without_model=error.what)


def answer_topic(
    topic: Topic,
    tools: Tools,
    given: Mapping[str, Provided] = NOTHING_PROVIDED,
    replies: Mapping[str, str] = NO_REPLIES,
) -> Iterator[TurnResult]:
    """The turns of a topic in order, save those that have their reply already (`replies`, by turn id)."""
    own_history: tuple[Message, ...] = ()
    for turn in topic.turns:
        history = own_history if turn.history is None else turn.history  # the track's conversation where it gives one
        provided = given.get(turn.id, NOTHING)
        reply = replies.get(turn.id)
        if reply is None:
            result = answer_turn_or_fall_back(turn, history, topic.ptkb, tools, provided)
            yield result
            reply = result.response.text
        asked = Message("user", provided.human_rewrite or turn.utterance)
        own_history = (*own_history, asked, Message("assistant", strip_not_found(reply)))
