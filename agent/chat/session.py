"""One conversation with one person: each utterance is answered by the flow, and the turn is kept."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.chat.cancellation import CancellationToken
from agent.chat.store import ChatTurn, Store
from agent.flow import Tools, answer_turn_or_fall_back
from agent.models.protocol import Listener, ignore_call
from agent.models.registry import open_model
from agent.turn.open_retriever import open_retriever
from agent.turn.retrieval import Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from schemas.errors import UsageError
from schemas.records import Call, Message, Plan, Statement, Turn, TurnResult

# A person looks at few passages, wants a short answer, and makes few statements about themselves.
PLAN = Plan(k=50, words=60, min_probability=0.45, address_person=True)
MAX_CHARACTERS = 4000  # characters of a question: what a small model reads at once, with room for its task


@dataclass(slots=True)
class CallForwarder:
    """Forwards the calls of model and search to the listener of the answer in hand, and stops a cancelled answer."""

    listener: Listener = ignore_call
    token: CancellationToken = field(default_factory=CancellationToken)

    def __call__(self, call: Call) -> None:
        self.listener(call)
        self.token.raise_if_cancelled()

    @contextmanager
    def forward_to(self, listener: Listener, token: CancellationToken) -> Iterator[None]:
        """Forward to this listener, until the block ends or the token is cancelled."""
        self.listener, self.token = listener, token
        try:
            yield
        finally:
            self.listener, self.token = ignore_call, CancellationToken()


@dataclass(frozen=True, slots=True)
class Assistant:
    """What answers, for any number of conversations, one at a time."""

    source: str  # the index or folder of the passages, as it was named
    model: str
    tools: Tools
    calls: CallForwarder = field(default_factory=CallForwarder)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(
        self,
        turn: Turn,
        history: Sequence[Message],
        ptkb: Sequence[Statement],
        listener: Listener = ignore_call,
        cancel: CancellationToken | None = None,
    ) -> TurnResult:
        """Answer a turn. `listener` is called after each step.

        Once `cancel` is cancelled, raises `AnswerCancelledError` after the step in hand.
        """
        token = cancel or CancellationToken()
        with self.lock, self.calls.forward_to(listener, token):
            token.raise_if_cancelled()
            return answer_turn_or_fall_back(turn, history, ptkb, self.tools)


def open_assistant(source: str, index: PassageIndex, model: str, embedder: Embedder | None) -> Assistant:
    """An assistant over an index. Raises what `open_model` raises."""
    calls, plan = CallForwarder(), PLAN
    llm = open_model(model, calls)
    retriever = open_retriever(index, embedder, plan)
    searcher = Searcher.over(retriever, plan, calls)
    embed = embedder.embed if embedder else None
    return Assistant(source, model, Tools(llm, searcher.search, searcher.read, plan, embed), calls)


@dataclass(slots=True)
class Session:
    """A conversation in progress. It is in the store from its first answer on; a turn that is stopped is not kept."""

    assistant: Assistant
    store: Store
    chat: int | None = None
    turns: tuple[ChatTurn, ...] = ()

    @classmethod
    def resume(cls, assistant: Assistant, store: Store, chat: int) -> "Session":
        """Go on with a kept conversation. Raises `MissingError` where there is none."""
        return cls(assistant, store, chat, store.read_turns(chat))

    def ask(
        self, utterance: str, listener: Listener = ignore_call, cancel: CancellationToken | None = None
    ) -> TurnResult:
        """Answer what the person says next, and keep the turn.

        Raises what `check_utterance` and `Assistant.answer` raise.
        """
        utterance = check_utterance(utterance)
        turn = Turn(f"{self.chat or 0}_{len(self.turns) + 1}", utterance, to_history(self.turns))
        answered = self.assistant.answer(turn, turn.history or (), self.store.list_statements(), listener, cancel)
        if self.chat is None:
            self.chat = self.store.start_chat(self.assistant.source)
        self.store.add_turn(self.chat, utterance, answered)
        self.turns = (*self.turns, ChatTurn(utterance, answered))
        return answered


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


def to_history(turns: Sequence[ChatTurn]) -> tuple[Message, ...]:
    """A conversation as the messages that the flow is given."""
    return tuple(
        message
        for turn in turns
        for message in (
            Message("user", turn.utterance),
            Message("assistant", turn.answered.response.cited_text),
        )
    )
