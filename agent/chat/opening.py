"""Opening what is asked: an index, or a folder whose index is brought up to date, and meanwhile the models.

The models are opened in a thread of its own while the documents are read.
"""

import logging
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from agent.chat.scope import require_scope
from agent.chat.session import Assistant, open_collection, report_call
from agent.chat.source import Asked
from agent.models.cancellation import find_token
from agent.models.hub import PREFIX
from agent.models.protocol import LanguageModel
from agent.models.registry import is_server_address, open_embedder, open_model, open_readers
from agent.models.wrapper import ModelWrapper
from agent.terminal.progress import stage_progress
from agent.terminal.reports import show_documents
from indexes.documents.document_index import open_documents
from indexes.documents.watching import (
    CurrentCollection,
    DocumentWatcher,
    VectorMaker,
    make_vectors_meanwhile,
    watch_documents,
)
from indexes.index_vectors import StageProgress, cache_vectors
from indexes.ranking.vectors import Embedder
from indexes.sharding.sharded_index import holds_index, open_index
from indexes.storage.directories import find_cache_directory
from indexes.text.sentences import load_tokenizer

READING_SECONDS = 1.5  # before somebody can ask, who does not wait for all documents
POLL_SECONDS = 0.1  # between two looks at whether the answer that waits is still wanted
Opened = TypeVar("Opened")
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class OpenLibrary:
    """Documents that are asked, and kept up to date meanwhile."""

    current: CurrentCollection
    scope: str  # what conversations are kept to from their beginning
    watcher: DocumentWatcher
    maker: VectorMaker | None


@contextmanager
def open_library(
    asked: Asked,
    find_embedder: Callable[[], Embedder | None],
    progress: StageProgress = stage_progress,
    *,
    words_first: bool = True,
) -> Iterator[OpenLibrary]:
    """An index, or the documents of a folder, to be asked until the block ends. It is up to date then and later.

    With `words_first` nobody waits for vectors, nor for all documents, unless some are named: what takes longer than a
    moment is done meanwhile. Raises what `Asked.find_source`, `open_index`, `open_documents`, `require_scope` and
    `find_embedder` raise.
    """
    source, links = asked.find_source(), asked.follow_links
    at_once = None if words_first else find_embedder()
    seconds = READING_SECONDS if words_first and not asked.only else math.inf
    if holds_index(source):
        index, waiting = open_index(source), 0
    else:
        documents = open_documents(source, find_cache_directory(), at_once, progress, seconds, follow_links=links)
        show_documents(documents.reading)
        index, waiting = documents.index, documents.reading.waiting
    if waiting:
        log.info("You can ask of what was read so far, or before; I go on reading meanwhile.")
    current = open_collection(str(source), index, find_embedder(), words_first=words_first)
    scope = require_scope(asked.only, current.collection)
    if waiting:
        current.all_read.clear()  # until the watcher has read the rest
    watching = watch_documents(current, at_once, follow_links=links)
    with watching as watcher, make_vectors_meanwhile(current, current.embedder) as maker:
        yield OpenLibrary(current, scope, watcher, maker)


@contextmanager
def open_assistant_over(asked: Asked, *, words_first: bool) -> Iterator[Assistant]:
    """What answers from documents that are kept up to date, until the block ends. Raises what opening them raises."""
    asked.find_source()  # where that fails, no model is opened
    answering, embedding = begin_to_open_models(asked)
    with open_library(asked, embedding.get, words_first=words_first) as library:
        yield Assistant(library.current, asked.model, answering.get(), library.scope)


class Opening(Generic[Opened]):
    """What is opened once, by whoever needs it first; others wait. Each is told what went wrong."""

    def __init__(self, open: Callable[[], Opened]) -> None:
        self._open, self._lock, self._opened = open, threading.Lock(), Future[Opened]()

    def get(self) -> Opened:
        """Raises what opening raised."""
        with self._lock:
            if not self.is_done:
                try:
                    self._opened.set_result(self._open())
                except BaseException as error:  # raised again for whoever waits
                    self._opened.set_exception(error)
        return self._opened.result()

    @property
    def is_done(self) -> bool:
        return self._opened.done()

    def has_failed(self) -> bool:
        return self.is_done and self._opened.exception() is not None


class ModelToCome(ModelWrapper):
    """A model that is being opened, which an answer waits for as long as it is wanted. Raises what opening raised."""

    def __init__(self, opening: Opening[LanguageModel]) -> None:
        self._opening = opening

    @property
    def _llm(self) -> LanguageModel:
        token = find_token()
        while not self._opening.is_done:
            token.pause(POLL_SECONDS)
        return self._opening.get()


def begin_to_open_models(asked: Asked) -> tuple[Opening[LanguageModel], Opening[Embedder | None]]:
    """Open both, one after the other.

    One from the hub is opened when it is waited for: its download shows progress, as reading does. The thread is a
    daemon: a server that says nothing does not keep the process alive.
    """
    answering = Opening(lambda: open_model(asked.model, report_call))
    embedding = Opening(lambda: open_caching_embedder(asked))
    reading: list[tuple[str | None, Callable[[], object]]] = [
        (asked.embedder, lambda: open_readers(embedding.get())),
        (None, load_tokenizer),  # which the first answer needs; where it fails, that answer tries again
    ]
    # Few first questions need a local one; a server that is not there is told soon.
    model_step = (asked.model, answering.get)
    steps = [model_step, *reading] if is_server_address(asked.model) else [*reading, model_step]

    def open_all() -> None:
        for name, open in steps:
            if not (name and name.startswith(PREFIX)):
                with suppress(BaseException):  # told to whoever waits
                    open()

    threading.Thread(target=open_all, name="opening", daemon=True).start()
    return answering, embedding


def open_caching_embedder(asked: Asked) -> Embedder | None:
    """The embedding model; vectors of passages are kept among the user's caches, unless incognito."""
    embedder = open_embedder(asked.embedder)
    return embedder if not embedder or asked.incognito else cache_vectors(embedder)
