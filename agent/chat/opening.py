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
from pathlib import Path
from typing import Generic, TypeVar

from agent.chat.observer import report_call
from agent.chat.scope import EVERYWHERE, require_scope
from agent.chat.session import open_collection
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
from indexes.index_vectors import cache_vectors
from indexes.passage_index import Index
from indexes.ranking.vectors import Embedder
from indexes.sharding.sharded_index import holds_index, open_index
from indexes.storage.directories import find_cache_directory
from indexes.text.sentences import load_tokenizer
from schemas.progress import StageProgress

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
    source: Path,
    find_embedder: Callable[[], Embedder | None],
    only: str = EVERYWHERE,
    progress: StageProgress = stage_progress,
    *,
    words_first: bool = True,
    follow_links: bool = False,
) -> Iterator[OpenLibrary]:
    """An index, or the documents of a folder, to be asked until the block ends. It is up to date then and later.

    With `words_first` nobody waits for vectors, nor for all documents, unless `only` names some: what takes longer than
    a moment is done meanwhile. Raises what `open_index`, `open_documents`, `require_scope` and `find_embedder` raise.
    """
    at_once = None if words_first else find_embedder()
    seconds = READING_SECONDS if words_first and not only else math.inf
    index, is_behind = _read_source(source, at_once, seconds, progress, follow_links)
    current = open_collection(str(source), index, find_embedder(), words_first=words_first)
    scope = require_scope(only, current.collection)
    if is_behind:
        current.all_read.clear()  # until the watcher has read the rest
    watching = watch_documents(current, at_once, follow_links=follow_links)
    with watching as watcher, make_vectors_meanwhile(current, current.embedder) as maker:
        yield OpenLibrary(current, scope, watcher, maker)


def _read_source(
    source: Path, embedder: Embedder | None, seconds: float, progress: StageProgress, follow_links: bool
) -> tuple[Index, bool]:
    """The passages, in a folder with vectors of this model if there is one; whether there was no time for them all."""
    if holds_index(source):
        return open_index(source), False
    cache = find_cache_directory()
    documents = open_documents(source, cache, embedder, progress, seconds, follow_links=follow_links)
    show_documents(documents.reading)
    is_behind = documents.reading.waiting > 0
    if is_behind:
        log.info("You can ask of what was read so far, or before; I go on reading meanwhile.")
    return documents.index, is_behind


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


def begin_to_open_models(
    model: str, embedder: str | None, *, keep_vectors: bool
) -> tuple[Opening[LanguageModel], Opening[Embedder | None]]:
    """Open both, one after the other; with `keep_vectors` those of passages are kept among the user's caches.

    One from the hub is opened when it is waited for: its download shows progress, as reading does. The thread is a
    daemon: a server that says nothing does not keep the process alive.
    """
    answering = Opening(lambda: open_model(model, report_call))
    embedding = Opening(lambda: open_caching_embedder(embedder, keep_vectors=keep_vectors))
    # The first answer needs it, and a folder that did not change does not; where it fails, that answer tries again.
    splitting = Opening(load_tokenizer)
    reading: list[tuple[str | None, Callable[[], object]]] = [
        (embedder, lambda: open_readers(embedding.get())),
        (None, splitting.get),
    ]
    model_step = (model, answering.get)  # few first questions need a local one; a server that is not there is told soon
    steps = [model_step, *reading] if is_server_address(model) else [*reading, model_step]

    def open_all() -> None:
        for name, open in steps:
            if not (name and name.startswith(PREFIX)):
                with suppress(BaseException):  # told to whoever waits
                    open()

    threading.Thread(target=open_all, name="opening", daemon=True).start()
    return answering, embedding


def open_caching_embedder(name: str | None, *, keep_vectors: bool) -> Embedder | None:
    embedder = open_embedder(name)
    return cache_vectors(embedder) if embedder and keep_vectors else embedder
