"""One conversation with one person: what they say goes through the flow, and what came of it is kept."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.chat.store import Said, Store
from agent.flow import Tools, answer_anyway
from agent.llm import open_model
from agent.llm.seam import Listener, unheard
from agent.search import Searcher, open_finder
from agent.select import said
from indexes.passages import PassageIndex
from indexes.vectors import Embedder
from schemas.errors import UsageError
from schemas.records import Answered, Call, Message, Plan, Statement, Turn

# A person looks at few passages, wants a short answer, changes the topic at will, and says few things of themselves.
PLAN = Plan(k=50, words=60, sure=0.45)
LONGEST = 4000  # characters of a question: what a small model reads at once, with room for its task


@dataclass(slots=True)
class Steps:
    """Tells whoever listens just now what model and search are doing."""

    listener: Listener = unheard

    def __call__(self, call: Call) -> None:
        self.listener(call)


@dataclass(frozen=True, slots=True)
class Assistant:
    """What answers, for any number of conversations, one at a time."""

    source: str  # what the passages are of, as it was named
    model: str
    tools: Tools
    steps: Steps = field(default_factory=Steps)
    busy: threading.Lock = field(default_factory=threading.Lock)

    def answer(
        self, turn: Turn, heard: Sequence[Message], ptkb: Sequence[Statement], listener: Listener = unheard
    ) -> Answered:
        """A turn answered; `listener` is told of each step as it is done."""
        with self.busy:
            self.steps.listener = listener
            try:
                return answer_anyway(turn, heard, ptkb, self.tools)
            finally:
                self.steps.listener = unheard


def open_assistant(source: str, index: PassageIndex, model: str, embedder: Embedder | None) -> Assistant:
    """An assistant over an index. Raises what `open_model` does."""
    steps, plan = Steps(), PLAN
    llm = open_model(model, steps)
    finder = open_finder(index, embedder, plan)
    searcher = Searcher.over(finder, plan, steps)
    return Assistant(source, model, Tools(llm, searcher.search, searcher.read, plan, finder.embed), steps)


@dataclass(slots=True)
class Session:
    """A conversation in progress. It is in the store from its first answer on; a turn that is broken off is not."""

    assistant: Assistant
    store: Store
    chat: int | None = None
    turns: tuple[Said, ...] = ()

    @classmethod
    def going_on(cls, assistant: Assistant, store: Store, chat: int) -> "Session":
        """A kept conversation, to be continued. Raises `MissingError` where there is none."""
        return cls(assistant, store, chat, store.turns(chat))

    def ask(self, utterance: str, listener: Listener = unheard) -> Answered:
        """The answer to what the person says next. Raises what `checked` does."""
        utterance = checked(utterance)
        turn = Turn(f"{self.chat or 0}_{len(self.turns) + 1}", utterance, heard_so_far(self.turns))
        answered = self.assistant.answer(turn, turn.heard or (), self.store.statements(), listener)
        if self.chat is None:
            self.chat = self.store.begin(self.assistant.source)
        self.store.add(self.chat, utterance, answered)
        self.turns = (*self.turns, Said(utterance, answered))
        return answered


def checked(utterance: str) -> str:
    """What somebody said, without the space around it. Raises `UsageError` where that is nothing, or very much."""
    utterance = utterance.strip()
    if not utterance:
        raise UsageError("there is nothing to answer: the question is empty")
    if len(utterance) > LONGEST:
        raise UsageError(f"the question is too long: {len(utterance)} characters, where at most {LONGEST} can be read")
    return utterance


def heard_so_far(turns: Sequence[Said]) -> tuple[Message, ...]:
    """A conversation as the flow hears it."""
    return tuple(
        message
        for turn in turns
        for message in (Message("user", turn.utterance), Message("assistant", said(turn.answered.response.text)))
    )
