"""One conversation with one person: what they say goes through the flow, and what came of it is kept."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.chat.store import ChatTurn, Store
from agent.flow import Tools, answer_turn_or_fall_back
from agent.models.protocol import Listener, ignore_call
from agent.models.registry import open_model
from agent.turn.extractive_answer import strip_not_found
from agent.turn.open_retriever import open_retriever
from agent.turn.retrieval import Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from schemas.errors import UsageError
from schemas.records import Call, Message, Plan, Statement, Turn, TurnResult

# A person looks at few passages, wants a short answer, changes the topic at will, and says few things of themselves.
PLAN = Plan(k=50, words=60, min_probability=0.45)
MAX_CHARACTERS = 4000  # characters of a question: what a small model reads at once, with room for its task


@dataclass(slots=True)
class CallForwarder:
    """Tells whoever listens just now what model and search are doing."""

    listener: Listener = ignore_call

    def __call__(self, call: Call) -> None:
        self.listener(call)


@dataclass(frozen=True, slots=True)
class Assistant:
    """What answers, for any number of conversations, one at a time."""

    source: str  # what the passages are of, as it was named
    model: str
    tools: Tools
    steps: CallForwarder = field(default_factory=CallForwarder)
    busy: threading.Lock = field(default_factory=threading.Lock)

    def answer(
        self, turn: Turn, history: Sequence[Message], ptkb: Sequence[Statement], listener: Listener = ignore_call
    ) -> TurnResult:
        """A turn answered; `listener` is told of each step as it is done."""
        with self.busy:
            self.steps.listener = listener
            try:
                return answer_turn_or_fall_back(turn, history, ptkb, self.tools)
            finally:
                self.steps.listener = ignore_call


def open_assistant(source: str, index: PassageIndex, model: str, embedder: Embedder | None) -> Assistant:
    """An assistant over an index. Raises what `open_model` does."""
    steps, plan = CallForwarder(), PLAN
    llm = open_model(model, steps)
    retriever = open_retriever(index, embedder, plan)
    searcher = Searcher.over(retriever, plan, steps)
    return Assistant(
        source, model, Tools(llm, searcher.search, searcher.read, plan, embedder.embed if embedder else None), steps
    )


@dataclass(slots=True)
class Session:
    """A conversation in progress. It is in the store from its first answer on; a turn that is broken off is not."""

    assistant: Assistant
    store: Store
    chat: int | None = None
    turns: tuple[ChatTurn, ...] = ()

    @classmethod
    def resume(cls, assistant: Assistant, store: Store, chat: int) -> "Session":
        """A kept conversation, to be continued. Raises `MissingError` where there is none."""
        return cls(assistant, store, chat, store.turns(chat))

    def ask(self, utterance: str, listener: Listener = ignore_call) -> TurnResult:
        """The answer to what the person says next. Raises what `checked` does."""
        utterance = check_utterance(utterance)
        turn = Turn(f"{self.chat or 0}_{len(self.turns) + 1}", utterance, to_history(self.turns))
        answered = self.assistant.answer(turn, turn.history or (), self.store.statements(), listener)
        if self.chat is None:
            self.chat = self.store.begin(self.assistant.source)
        self.store.add(self.chat, utterance, answered)
        self.turns = (*self.turns, ChatTurn(utterance, answered))
        return answered


def check_utterance(utterance: str) -> str:
    """What somebody said, without the space around it. Raises `UsageError` where that is nothing, or very much."""
    utterance = utterance.strip()
    if not utterance:
        raise UsageError("there is nothing to answer: the question is empty")
    if len(utterance) > MAX_CHARACTERS:
        raise UsageError(
            f"the question is too long: {len(utterance)} characters, where at most {MAX_CHARACTERS} can be read"
        )
    return utterance


def to_history(turns: Sequence[ChatTurn]) -> tuple[Message, ...]:
    """A conversation as the flow hears it."""
    return tuple(
        message
        for turn in turns
        for message in (
            Message("user", turn.utterance),
            Message("assistant", strip_not_found(turn.answered.response.text)),
        )
    )
