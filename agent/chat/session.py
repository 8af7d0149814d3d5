"""One conversation with one person: each utterance is answered by the flow, and the turn is kept.

Who waits for an answer is told of each step, shown what is written as far as it was checked, and may cancel it.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from agent.chat.dated_documents import answer_by_date
from agent.chat.scope import EVERYWHERE, keep_to_scope
from agent.chat.small_talk import reply_to_small_talk
from agent.chat.store import ChatTurn, Store
from agent.flow import Tools, answer_turn_or_fall_back
from agent.models.cancellation import CancellationToken, heed_token
from agent.models.protocol import LanguageModel, Listener, ignore_call
from agent.models.registry import open_model
from agent.turn.extractive_answer import says_not_found
from agent.turn.quotes import find_quotes
from agent.turn.retrieval import Searcher
from agent.turn.writing.checked_answer import ResponseListener
from indexes.documents.collection import Collection
from indexes.documents.watching import CurrentCollection
from indexes.passage_index import Index
from indexes.ranking.vectors import Embedder
from schemas.errors import ConvagentError, MissingError, UsageError
from schemas.records import Call, Message, Plan, Response, Statement, Turn, TurnResult
from schemas.tuning import AnswerTuning, QueryTuning, RetrievalTuning, StatementTuning, Tuning

# A person looks at few passages, wants a short answer, and makes few statements about themselves. What a short question
# over few documents refers to, phrases tell better than the encoder that was taught long conversations; and it asks for
# a fact more often than a turn of iKAT does, so that the reader counts for more, and so do codes and editions. What
# nobody wrote down is asked of the subjects of the documents: only the reader tells that.
BRIEF = Tuning(
    query=QueryTuning(needs_pointing=True, context_words=0),
    retrieval=RetrievalTuning(takes_questions=True),
    statements=StatementTuning(needed_by_person=1.0, needed_otherwise=1.0),
    answer=AnswerTuning(
        words_within=0.6,
        sure_chance=0.85,
        compared=6,
        reading_weight=0.08,
        least_margin=-8.0,
        answerable_reading=1.0,
        answerable_unread=0.04,
        answerable_offset=3.75,
        first_passages=5,
        rank_penalty=0.03,
        code_weight=0.6,
        newest_weight=1.0,
        successor_weight=0.3,
        foreign_penalty=0.2,
        nearby_sentences=3,
        own_language=True,
    ),
)
PLAN = Plan(k=50, words=70, min_probability=0.45, address_person=True, tuning=BRIEF)
READ_PASSAGES = 10  # where there is a reader; words alone are misled by more than a few
MAX_CHARACTERS = 4000  # characters of a question: what a small model reads at once, with room for its task


STEP_MESSAGES = {
    "hyde": "thought of words to search for",
    "context": "looked for what the question refers to",
    "rewrite": "made the question stand alone",
    "call": "called the search",
    "statements": "weighed what is known about you",
    "compare": "compared what may answer",
    "write": "wrote the answer",
}


def describe_call(call: Call) -> str:
    if call.verb == "search":
        return f"searched for “{call.prompt}”, {call.reply}"
    return STEP_MESSAGES.get(call.step, call.step)


@dataclass(frozen=True, slots=True)
class Observer:
    """Whoever waits. Once `token` is cancelled, the next step or sentence raises `AnswerCancelledError`."""

    on_call: Listener = ignore_call
    on_response: ResponseListener = lambda _response: None  # is handed the answer so far, with each further sentence
    token: CancellationToken = field(default_factory=CancellationToken)

    def report(self, call: Call) -> None:
        self.on_call(call)
        self.token.raise_if_cancelled()

    def show(self, response: Response) -> None:
        self.token.raise_if_cancelled()
        self.on_response(response)


NOBODY = Observer()
_waiting = ContextVar("who waits for the answer in hand", default=NOBODY)


def report_call(call: Call) -> None:
    """Tell whoever waits for the answer that this thread makes of a call of model or search."""
    _waiting.get().report(call)


@contextmanager
def attend_to(observer: Observer) -> Iterator[None]:
    """Until the block ends, this thread makes an answer for this observer, and heeds its token."""
    before = _waiting.set(observer)
    try:
        with heed_token(observer.token):
            yield
    finally:
        _waiting.reset(before)


@dataclass(slots=True)
class Assistant:
    """What answers, for any number of conversations, one at a time. Its model can be changed between two answers."""

    current: CurrentCollection
    model: str
    llm: LanguageModel  # of that name
    initial_scope: str = EVERYWHERE  # what conversations are kept to from their beginning
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def collection(self) -> Collection:
        """The passages that the next question is asked of."""
        return self.current.collection

    @property
    def source(self) -> str:
        """The index or folder of the passages, as it was named."""
        return self.collection.source

    def use_model(self, name: str) -> None:
        """Answer with another model from the next question on, and free the memory of the one before.

        Raises what `open_model` raises.
        """
        llm = open_model(name, report_call)
        with self.lock:
            before, self.model, self.llm = self.llm, name, llm
            before.close()

    def respond(
        self,
        turn: Turn,
        turns: Sequence[ChatTurn],
        ptkb: Sequence[Statement],
        observer: Observer = NOBODY,
        scope: str = EVERYWHERE,
    ) -> ChatTurn:
        """Respond to what is said after these turns: small talk at once, a question by the flow.

        Only passages of the scope are searched; the scope of the turn that comes back is that of the next one. Once
        `observer` has cancelled it, raises `AnswerCancelledError`: at once where a server is waited for, else after the
        step in hand.
        """
        if said := reply_to_small_talk(turn, self.collection, scope):
            return said
        with attend_to(observer):
            return replace(self._answer(turn, turns, ptkb, observer, scope), scope=scope)

    def _answer(
        self, turn: Turn, turns: Sequence[ChatTurn], ptkb: Sequence[Statement], observer: Observer, scope: str
    ) -> ChatTurn:
        """Answer a question from the documents of the date that it names, if it does and they have an answer."""
        history = to_history(turns, whole=self.llm.writes_answers)
        with self.lock, self.current.use() as searchable:
            observer.token.raise_if_cancelled()
            embedder = self.current.embedder
            depth = READ_PASSAGES if embedder and embedder.read else PLAN.context_passages

            def answer(asked: Turn, history: Sequence[Message], kept: Collection) -> TurnResult:
                retriever = replace(searchable.retriever, rows=kept.rows)
                searcher, documents = Searcher(retriever, PLAN, report_call), kept.open_documents()
                plan = replace(PLAN, context_passages=depth, today=kept.today().isoformat())
                tools = Tools(
                    self.llm, searcher.search, searcher.read, plan, embedder, show=observer.show, documents=documents
                )
                return answer_turn_or_fall_back(asked, history, ptkb, tools)

            kept = keep_to_scope(scope, searchable.collection)
            return answer_by_date(turn, history, kept, answer) or ChatTurn(turn.utterance, answer(turn, history, kept))


def open_collection(
    source: str, index: Index, embedder: Embedder | None, *, words_first: bool = False
) -> CurrentCollection:
    """An index, ready to be asked, which may be replaced by another. For `words_first` see `CurrentCollection`."""
    return CurrentCollection(Collection(source, index), embedder, PLAN, words_first=words_first)


def open_assistant(current: CurrentCollection, model: str) -> Assistant:
    """An assistant over the current collection. Raises what `open_model` raises."""
    return Assistant(current, model, open_model(model, report_call))


@dataclass(slots=True)
class Session:
    """A conversation in progress. It is in the store from its first answer on; a turn that is stopped is not kept.

    A turn that cannot be kept is answered all the same: `problem` then says why, and the next one tries again.
    """

    assistant: Assistant
    store: Store
    chat: int | None = None
    turns: tuple[ChatTurn, ...] = ()
    scope: str | None = None  # what the next question is kept to; None: as before, or as the assistant begins
    problem: ConvagentError | None = None  # why the last answer could not be kept
    unkept: tuple[ChatTurn, ...] = ()  # the last turns, where they are still to be kept
    replaced: int = 0  # the number of the kept turn, the last, whose place the next one takes; 0 for none
    is_kept: bool = True  # False: the store is asked for statements alone

    @classmethod
    def resume(cls, assistant: Assistant, store: Store, chat: int | None, replaced: int = 0) -> "Session":
        """Go on with a kept conversation, if one is named; with `replaced`, as it was before that turn.

        Where that is not its last, what was said before begins another conversation, and this one stays as it is.
        Raises `MissingError` where there is no such conversation, `UsageError` where it has no such turn.
        """
        if chat is None:
            return cls(assistant, store)
        turns = store.read_turns(chat)
        if not 0 <= replaced <= len(turns):
            raise UsageError(f"the conversation has no question {replaced} that could be asked again")
        if 0 < replaced < len(turns):
            before = turns[: replaced - 1]
            return cls(assistant, store, turns=before, unkept=before)
        return cls(assistant, store, chat, turns[:-1] if replaced else turns, replaced=replaced)

    def ask(self, utterance: str, observer: Observer = NOBODY) -> TurnResult:
        """Answer what the person says next, and keep the turn.

        Raises what `check_utterance` and `Assistant.respond` raise.
        """
        turn = Turn(f"{self.chat or 0}_{len(self.turns) + 1}", check_utterance(utterance))
        said = self.assistant.respond(turn, self.turns, self.store.list_statements(), observer, self.current_scope)
        self.turns, self.scope = (*self.turns, said), said.scope
        if self.is_kept:
            self._keep(said)
        return said.answered

    def _keep(self, said: ChatTurn) -> None:
        """Keep a turn, after those before it that could not be kept. Where that fails, `problem` has the error."""
        self.unkept, self.problem = (*self.unkept, said), None
        try:
            if self.chat is None:
                self.chat = self.store.start_chat(self.assistant.source)
            if self.replaced:
                self.store.replace_turn(self.chat, self.replaced, said)
                self.unkept, self.replaced = (), 0
            while self.unkept:
                self.store.add_turn(self.chat, self.unkept[0])
                self.unkept = self.unkept[1:]
        except ConvagentError as error:
            self.problem = error
            if isinstance(error, MissingError):  # the conversation was deleted meanwhile
                self.unkept = ()

    @property
    def current_scope(self) -> str:
        if self.scope is not None:
            return self.scope
        return self.turns[-1].scope if self.turns else self.assistant.initial_scope


def check_utterance(utterance: str) -> str:
    """An utterance without the space around it. Raises `UsageError` where it is empty or too long."""
    utterance = utterance.strip()
    if not utterance:
        raise UsageError("there is nothing to answer: the question is empty")
    if len(utterance) > MAX_CHARACTERS:
        raise UsageError(
            f"the question is too long: {len(utterance)} characters, where at most {MAX_CHARACTERS} can be read"
        )
    return utterance


def to_history(turns: Sequence[ChatTurn], *, whole: bool) -> tuple[Message, ...]:
    """A conversation as the messages that the flow is given: without small talk.

    Of an answer that is not `whole`, only the sentence that was asked for completes the next question.
    """
    return tuple(
        message
        for turn in turns
        if turn.kind == "question"
        for message in (
            Message("user", turn.answered.query.utterance),
            Message("assistant", turn.answered.response.cited_text if whole else find_subject(turn.answered)),
        )
        if message != Message("user", "")  # where a client of `/v1` lets the assistant speak first
    )


def find_subject(answered: TurnResult) -> str:
    """The sentence that answered, under its headings; empty where none was found: what came nearest is no subject."""
    response = answered.response
    cited = [sentence for sentence in response.sentences if sentence.passage_ids]
    if says_not_found(response) or not cited:
        return ""
    passages = [passage for passage in answered.passages if passage.id in cited[0].passage_ids]
    quotes = find_quotes(passages, AnswerTuning())
    return next((quote.headed for quote in quotes if quote.texts[0] == cited[0].text), cited[0].text)
