"""The passages that the next question is asked of, which may be replaced while the program runs."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from indexes.documents.collection import Collection
from indexes.index_vectors import has_whole_vectors
from indexes.ranking.hybrid import HybridRetriever, open_retriever
from indexes.ranking.vectors import Embedder
from schemas.records import Plan, Problem

Listener = Callable[[str], object]
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class SearchableCollection:
    """A collection with what finds passages in it."""

    collection: Collection
    retriever: HybridRetriever
    lacks_vectors: bool  # whether it is searched by words until they are made


class CurrentCollection:
    """A collection whose place another one can take, at once and as a whole, from any thread.

    Whoever answers uses one until the answer is done. With `words_first`, documents without vectors are searched by
    words, for somebody to make them meanwhile (`background_vectors`).
    """

    def __init__(
        self, collection: Collection, embedder: Embedder | None, plan: Plan, *, words_first: bool = False
    ) -> None:
        self._embedder, self._plan, self._words_first = embedder, plan, words_first
        self._turn = threading.Lock()  # of those who replace
        self.tell: Listener = log.info  # is told in a few words what became of the documents
        self.left_out: tuple[Problem, ...] = ()  # files of the folder, with the reasons, as of the last reading
        self.progress = ""  # of what is made meanwhile
        self.on_progress: Listener = bool  # is told of each change of it
        self.replaced, self.idle, self.all_read = threading.Event(), threading.Event(), threading.Event()
        self.idle.set()
        self.all_read.set()  # unless somebody is reading documents, before which vectors are not worth making
        self.replace(collection)

    @property
    def collection(self) -> Collection:
        return self.searchable.collection

    @contextmanager
    def use(self) -> Iterator[SearchableCollection]:
        """The collection for one answer. What is done meanwhile waits until the block ends."""
        self.idle.clear()
        try:
            yield self.searchable
        finally:
            self.idle.set()

    def replace(self, collection: Collection) -> None:
        """Let the next question be asked of this collection. Opening it may take a while, and holds nobody up."""
        with self._turn:
            self.searchable = self._open(collection, self._lacks_vectors(collection))
        self.replaced.set()

    def add_vectors(self, before: Collection, embedded: Collection) -> None:
        """Let this one take the place of the same one without vectors, unless others took it already."""
        with self._turn:
            if self.collection is before:
                self.searchable = self._open(embedded, lacks_vectors=False)

    def show_progress(self, progress: str) -> None:
        self.progress = progress
        self.on_progress(progress)

    def _lacks_vectors(self, collection: Collection) -> bool:
        if not self._words_first or not self._embedder or collection.is_empty or not collection.is_folder:
            return False
        return not has_whole_vectors(collection.index, self._embedder)

    def _open(self, collection: Collection, lacks_vectors: bool) -> SearchableCollection:
        if collection.is_empty:
            nothing = np.zeros(len(collection.index), bool)
            return SearchableCollection(
                collection, HybridRetriever(collection.index, rows=nothing), lacks_vectors=False
            )
        retriever = open_retriever(collection.index, None if lacks_vectors else self._embedder, self._plan)
        return SearchableCollection(collection, retriever, lacks_vectors)
