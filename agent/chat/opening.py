"""Opening a conversation: an index, or a folder whose index is brought up to date, and meanwhile the models.

The models are opened in a thread of its own while the documents are read.
"""

import logging
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from agent.chat.session import CallForwarder
from agent.models.cancellation import find_token
from agent.models.hub import PREFIX
from agent.models.protocol import LanguageModel
from agent.models.registry import open_embedder, open_model
from agent.models.wrapper import ModelWrapper
from agent.terminal.progress import stage_progress
from agent.terminal.reports import show_documents
from indexes.documents.document_index import open_documents
from indexes.index_vectors import cache_vectors
from indexes.passage_index import Index
from indexes.ranking.vectors import Embedder
from indexes.sharding.sharded_index import holds_index, open_index
from indexes.storage.directories import find_cache_directory
from indexes.text.sentences import load_tokenizer
from schemas.progress import StageProgress

READING_SECONDS = 1.5  # before somebody can ask, who does not wait for all documents
log = logging.getLogger("convagent")


def open_source(
    source: Path,
    embedder: Embedder | None,
    seconds: float = math.inf,
    progress: StageProgress = stage_progress,
    *,
    follow_links: bool = False,
) -> tuple[Index, bool]:
    """The passages of an index, or of a folder, and whether these are not all of its documents, for want of time.

    Those of a folder have vectors of this model where one is given. Reading takes about that many seconds at most;
    `watch_documents` reads the rest. Raises what `open_index` and `open_documents` raise.
    """
    if holds_index(source):
        return open_index(source), False
    cache = find_cache_directory()
    documents = open_documents(source, cache, embedder, progress, seconds, follow_links=follow_links)
    show_documents(documents.reading)
    is_behind = documents.reading.waiting > 0
    if is_behind:
        log.info("You can ask of what was read so far, or before; I go on reading meanwhile.")
    return documents.index, is_behind


POLL_SECONDS = 0.1  # between two looks at whether the answer that waits is still wanted
Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class OpeningModels:
    """What waits for the models until they are there. Errors: those of `open_embedder` and `open_model`."""

    find_embedder: Callable[[], Embedder | None]
    find_model: Callable[[], LanguageModel]
    answering: "Future[LanguageModel]"  # never done for a model from the hub
    calls: CallForwarder

    def find_model_later(self) -> LanguageModel:
        """The model, for somebody who is not to wait for it now: whoever asks it waits, and is told why it failed."""
        return ModelToCome(self.answering)

    def has_failed(self) -> bool:
        return self.answering.done() and self.answering.exception() is not None


class ModelToCome(ModelWrapper):
    """A model that is being opened, which an answer waits for as long as it is wanted. Raises what opening raised."""

    def __init__(self, opening: "Future[LanguageModel]") -> None:
        self._opening = opening

    @property
    def _llm(self) -> LanguageModel:
        token = find_token()
        while not self._opening.done():
            token.pause(POLL_SECONDS)
        return self._opening.result()


def begin_to_open_models(model: str, embedder: str | None, *, keep_vectors: bool) -> OpeningModels:
    """Open both, one after the other; with `keep_vectors` those of passages are kept among the user's caches.

    One from the hub is opened when it is waited for: its download shows progress, as reading does. The thread is a
    daemon: a server that says nothing does not keep the process alive.
    """
    calls, jobs = CallForwarder(), list[Callable[[], object]]()

    def begin(name: str | None, future: "Future[Opened]", open: Callable[[], Opened]) -> Callable[[], Opened]:
        if name and name.startswith(PREFIX):
            return cache(open)
        jobs.append(lambda: _settle(future, open))
        return future.result

    answering = Future[LanguageModel]()
    find_embedder = begin(embedder, Future(), lambda: _open_caching_embedder(embedder, keep_vectors))
    find_llm = begin(model, answering, lambda: open_model(model, calls))
    # The first answer needs it, and a folder that did not change does not; where it fails, that answer tries again.
    jobs.append(lambda: _settle(Future(), load_tokenizer))
    threading.Thread(target=lambda: [job() for job in jobs], name="opening", daemon=True).start()
    return OpeningModels(find_embedder, find_llm, answering, calls)


def _settle(future: "Future[Opened]", open: Callable[[], Opened]) -> None:
    """Let the future have what was opened, or why it cannot be."""
    try:
        future.set_result(open())
    except BaseException as error:  # raised again for whoever waits
        future.set_exception(error)


def _open_caching_embedder(name: str | None, keep_vectors: bool) -> Embedder | None:
    embedder = open_embedder(name)
    return cache_vectors(embedder) if embedder and keep_vectors else embedder
