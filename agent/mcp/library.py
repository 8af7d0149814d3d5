"""What the tools search and ask, opened when it is first needed."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from agent.chat.source import Asked
from agent.models.cancellation import CancellationToken
from schemas.errors import ConvagentError

if TYPE_CHECKING:
    from agent.chat.opening import OpenLibrary
    from agent.chat.session import Assistant
    from agent.chat.store import Store
    from indexes.documents.watching import CurrentCollection
    from indexes.ranking.vectors import Embedder

LOADING, READING = "loading the models", "waiting for the documents to be read"
POLL_SECONDS = 0.1  # between two looks at what there is to tell, and at whether a call was cancelled
Report = Callable[[float, float | None, str | None], Awaitable[None]]  # how much is done, of how much, and a message


@dataclass(slots=True)
class CallProgress:
    """How far a call is. The thread that works writes it and heeds `token`; another one reads it."""

    token: CancellationToken = field(default_factory=CancellationToken)
    done: float = 0.0  # grows from notification to notification, over all stages
    total: float | None = None  # None where nobody knows
    message: str = ""
    told: float = 0.0  # of `done`

    async def tell(self, report: Report | None) -> None:
        """Tell how far it is, if it is further than before."""
        if report and (done := self.done) > self.told:
            self.told = done
            await report(done, self.total, self.message)

    def step(self, message: str) -> None:
        """One more step was done. Raises `AnswerCancelledError` once the call is cancelled."""
        self.token.raise_if_cancelled()
        if message != self.message:
            self.done, self.total, self.message = self.done + 1, None, message

    @contextmanager
    def count_stage(self, stage: str, total: int) -> Iterator[Callable[[int], None]]:
        """A `StageProgress`, whose ticks raise `AnswerCancelledError` once the call is cancelled."""
        before = self.done
        self.total, self.message = before + total, stage

        def tick(done: int) -> None:
            self.token.raise_if_cancelled()
            self.done = before + done

        yield tick

    def wait_until(self, is_done: Callable[[float], bool], find_message: Callable[[], str]) -> None:
        """Wait until `is_done`, which is called with the seconds that it may take.

        Raises `AnswerCancelledError` once the call is cancelled.
        """
        while not is_done(POLL_SECONDS):
            self.step(find_message())

    @contextmanager
    def take_turn(self, lock: threading.Lock, message: str) -> Iterator[None]:
        """Hold a lock until the block ends. Raises `AnswerCancelledError` once the call is cancelled."""
        self.wait_until(lambda seconds: lock.acquire(timeout=seconds), lambda: message)
        try:
            yield
        finally:
            lock.release()


class Library:
    """The documents and models of one process. Any thread may call; `close` ends what goes on in the background.

    Documents are read, and the embedding model is loaded, by the first call that needs them; a call that is cancelled
    meanwhile leaves the rest to the next. Vectors are made in the background: until they are there, one searches by
    words.
    """

    def __init__(self, asked: Asked) -> None:
        """Raises what `Asked.find_source` raises."""
        asked.find_source()
        self.asked = asked
        self._documents = threading.Lock()  # of whoever opens them
        self._answering = threading.Lock()  # of whoever opens the assistant
        self._background = ExitStack()
        self._problem = "there is no embedding model"  # for want of which one searches by words alone
        self._opened: OpenLibrary | None = None
        self._assistant: Assistant | None = None

    def open_documents(self, progress: CallProgress) -> "OpenLibrary":
        """The passages, up to date. Raises what opening an index or a folder raises."""
        from agent.chat.opening import open_caching_embedder, open_library

        def find_embedder() -> "Embedder | None":
            progress.step(LOADING)
            try:
                return open_caching_embedder(self.asked)
            except ConvagentError as error:
                self._problem = str(error)
                return None

        with progress.take_turn(self._documents, READING):
            if self._opened is None:
                opening = open_library(self.asked, find_embedder, progress.count_stage)
                self._opened = self._background.enter_context(opening)
            return self._opened

    def wait_for_documents(self, progress: CallProgress, *, vectors: bool = False) -> "CurrentCollection":
        """The passages of all documents, and all `vectors` that there will be: the first call does not wait for them
        where they are many."""
        opened = self.open_documents(progress)
        current = opened.current
        progress.wait_until(current.all_read.wait, lambda: current.progress or READING)
        if vectors and (maker := opened.maker):
            progress.wait_until(maker.wait_until_made, lambda: current.progress or progress.message)
        return current

    def explain_words(self) -> str:
        """Why it was searched by words alone, and whether that ends."""
        if self._opened is None or self._opened.current.embedder is None:
            return f"Searched by words alone: {self._problem}."
        return self._opened.current.progress or "Searched by words: not all vectors are made."

    def explain_documents(self) -> str:
        """That not all documents are read, and how many are; "" where they are."""
        if self._opened is None or self._opened.current.all_read.is_set():
            return ""
        return f"Not all documents are known yet. {self._opened.current.progress}".rstrip()

    def open_assistant(self, progress: CallProgress) -> "Assistant":
        """What answers. Raises what opening the model raises."""
        from agent.chat.session import open_assistant

        current = self.open_documents(progress).current
        with progress.take_turn(self._answering, LOADING):
            if self._assistant is None:
                self._assistant = open_assistant(current, self.asked.model)
            return self._assistant

    @cached_property
    def store(self) -> "Store":
        """What is known about the person."""
        from agent.chat.store import open_store

        return open_store(incognito=self.asked.incognito)

    def close(self) -> None:
        self._background.close()
