"""`convagent mcp`: what the tools search and ask, opened when it is first needed; and how they are served."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agent.models.cancellation import CancellationToken
from schemas.errors import ConvagentError, MissingError, UsageError

if TYPE_CHECKING:
    from agent.chat.opening import OpenLibrary
    from agent.chat.session import Assistant
    from agent.chat.store import Store
    from agent.mcp.tools import DocumentServer
    from indexes.documents.watching import CurrentCollection
    from indexes.ranking.vectors import Embedder

LOADING, READING = "loading the models", "waiting for the documents to be read"
HOST, PATH = "127.0.0.1", "/mcp"
COOKIE = "convagent-mcp"  # which nobody is given: clients send the token
MAX_SESSIONS = 100
POLL_SECONDS = 0.1  # between two looks at what there is to tell, and at whether a call was cancelled
log = logging.getLogger("convagent")
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


@dataclass
class Library:
    """The documents and models of one process. Any thread may call; `close` ends what goes on in the background.

    Documents are read, and the embedding model is loaded, by the first call that needs them; a call that is cancelled
    meanwhile leaves the rest to the next. Vectors are made in the background: until they are there, one searches by
    words.
    """

    source: Path  # an index, or a folder of documents
    model: str = "smollm2"
    embedder: str | None = None
    incognito: bool = False
    follow_links: bool = False  # also those that lead out of the folder

    def __post_init__(self) -> None:
        self._documents = threading.Lock()  # of whoever opens them
        self._answering = threading.Lock()  # of whoever opens the assistant
        self._background = ExitStack()
        self._problem = "there is no embedding model"  # for want of which one searches by words alone
        self._opened: OpenLibrary | None = None
        self._assistant: Assistant | None = None

    def open_documents(self, progress: CallProgress) -> "CurrentCollection":
        """The passages, up to date. Raises what opening an index or a folder raises."""
        return self._open(progress).current

    def _open(self, progress: CallProgress) -> "OpenLibrary":
        from agent.chat.opening import open_caching_embedder, open_library

        def find_embedder() -> "Embedder | None":
            progress.step(LOADING)
            try:
                return open_caching_embedder(self.embedder, keep_vectors=not self.incognito)
            except ConvagentError as error:
                self._problem = str(error)
                return None

        with progress.take_turn(self._documents, READING):
            if self._opened is None:
                opening = open_library(
                    self.source, find_embedder, progress=progress.count_stage, follow_links=self.follow_links
                )
                self._opened = self._background.enter_context(opening)
            return self._opened

    def wait_for_documents(self, progress: CallProgress, *, vectors: bool = False) -> "CurrentCollection":
        """The passages of all documents, and all `vectors` that there will be: the first call does not wait for them
        where they are many."""
        opened = self._open(progress)
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

        current = self.open_documents(progress)
        with progress.take_turn(self._answering, LOADING):
            if self._assistant is None:
                self._assistant = open_assistant(current, self.model)
            return self._assistant

    @cached_property
    def store(self) -> "Store":
        """What is known about the person."""
        from agent.chat.store import open_store

        return open_store(incognito=self.incognito)

    def close(self) -> None:
        """End what goes on in the background."""
        self._background.close()


def serve_on_stdio(library: Library) -> None:
    """Serve the program that started this one, until it closes stdin.

    The SDK takes the two streams for the protocol alone: whatever else prints, libraries in C and Rust included, goes
    to stderr.
    """
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("stdin or stdout is closed", remedy="Clients start this command; --http listens on a port.")
    if sys.stdin.isatty():
        log.info("Waiting for a client on stdin; clients start this command themselves. --http listens on a port.")
    with closing(library):
        server = load_server(library)
        for number in (signal.SIGINT, signal.SIGTERM):  # a thread that waits in `read` would hold up any other end
            signal.signal(number, lambda sent, _frame: os._exit(128 + sent))
        try:
            server.run()
        except* BrokenPipeError:  # the client is gone
            pass


def serve_on_port(library: Library, port: int) -> None:
    """Serve programs of this machine that send the token, until Ctrl-C or SIGTERM.

    The guard is that of `serve`, which also turns away other sites. The token is that of the last start, so that
    settings of clients go on working; incognito another one each time. Both are said on stderr, however quiet it is to
    be. Raises `RunError` where the port is taken, and what `find_own_token` raises.
    """
    with closing(library):
        server = load_server(library)
        from agent.serve.connections import open_socket, run_server, to_url
        from agent.serve.request_guard import RequestGuard
        from agent.serve.users import Access, find_own_token, hash_token, make_token
        from indexes.storage.directories import find_data_directory

        kept = find_data_directory() / "mcp-token"
        token = make_token() if library.incognito else find_own_token(kept, anew=False)
        app = server.streamable_http_app(streamable_http_path=PATH, host=HOST, max_sessions=MAX_SESSIONS)
        guard = RequestGuard(Access(hash_token(token)), COOKIE, api_path="")
        with open_socket(HOST, port) as listening:
            url = f"{to_url(HOST, listening).rstrip('/')}{PATH}"
            said = f"convagent: listening at {url}; Ctrl-C ends it\nAuthorization: Bearer {token}"
            run_server(guard.protect(app), listening, lambda: typer.echo(said, err=True))


def load_server(library: Library) -> "DocumentServer":
    """The server of the SDK. Raises `MissingError` where the extra is not installed."""
    try:
        from agent.mcp.tools import DocumentServer
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        remedy = "Install the extra: pip install 'convagent[mcp]'."
        raise MissingError("the SDK of the Model Context Protocol is not installed", remedy=remedy) from error
    return DocumentServer(library)
