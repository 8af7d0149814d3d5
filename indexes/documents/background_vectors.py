"""Vectors that are made while a person asks already: until they are there, documents are searched by words."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from indexes.documents.collection import Collection
from indexes.documents.current_collection import CurrentCollection
from indexes.index_vectors import MAX_UNASKED, cache_vectors, embed_index
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder, Vectors, WrappedEmbedder
from schemas.errors import ConvagentError

TEXTS_AT_ONCE = 8  # embedded before it is looked whether somebody asks: a few tenths of a second
WAIT_SECONDS = 0.2  # for somebody's answer, before it is looked whether the program ends


class _GivenUpError(Exception):
    """The program ends, or the documents are others now."""


class _PausingEmbedder(WrappedEmbedder):
    """An embedding model that calls `pause` between a few texts and the next."""

    def __init__(self, embedder: Embedder, pause: Callable[[], None]) -> None:
        super().__init__(embedder)
        self._pause = pause

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = [np.zeros((0, self.size), dtype=np.float32)]
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            self._pause()
            rows.append(self.wrapped.embed(texts[start : start + TEXTS_AT_ONCE]))
        return np.concatenate(rows)


@contextmanager
def make_vectors_meanwhile(current: CurrentCollection, embedder: Embedder | None) -> Iterator["VectorMaker | None"]:
    """Make the vectors that current collections lack, in a thread of its own, until the block ends."""
    if embedder is None:
        yield None
        return
    maker = VectorMaker(current, cache_vectors(embedder))
    thread = threading.Thread(target=maker.run, name="embedding", daemon=True)
    thread.start()
    try:
        yield maker
    finally:
        maker.end()
        thread.join()


@dataclass(frozen=True, slots=True)
class VectorMaker:
    """Makes the vectors of whatever is the current collection, whenever it lacks them."""

    current: CurrentCollection
    embedder: Embedder
    ended: threading.Event = field(default_factory=threading.Event)
    _rests: threading.Event = field(default_factory=threading.Event)  # while there is nothing to make

    def run(self) -> None:
        """Wait for collections without vectors, until `end` is called."""
        while True:
            self._rests.set()
            self.current.replaced.wait()
            self._rests.clear()
            self.current.replaced.clear()
            if self.ended.is_set():
                return
            if self.current.searchable.lacks_vectors:
                self._make_vectors(self.current.collection)

    def wait_until_made(self, seconds: float) -> bool:
        """Wait for all vectors that are wanted, so long at most. Whether they are there, or could not be made."""
        if self.current.replaced.is_set():  # looked at first: it is cleared last
            return self.ended.wait(seconds)
        return self._rests.wait(seconds)

    def end(self) -> None:
        self.ended.set()
        self.current.replaced.set()

    def _make_vectors(self, collection: Collection) -> None:
        """Embed a collection, and let the next question be asked by meaning, too. What goes wrong is told."""
        directory = collection.index.directory
        try:
            pausing = _PausingEmbedder(self.embedder, lambda: self._wait_for_quiet(collection))
            if not embed_index(directory, pausing, self._show_progress, MAX_UNASKED):
                self._wait_for_quiet(collection)  # too many: those that are found get theirs then
            embedded = replace(collection, index=PassageIndex(directory))
        except _GivenUpError:
            return
        except ConvagentError as error:
            if self.current.collection is collection:
                self.current.tell(f"I go on searching by words: {error}")
            return
        finally:
            self.current.show_progress("")
        self.current.add_vectors(collection, embedded)

    def _wait_for_quiet(self, collection: Collection) -> None:
        """Wait until nobody is answered and all is read. Raises `_GivenUpError` where that is too late."""
        awaited = (self.current.idle, self.current.all_read)
        while not self.ended.is_set() and not all(event.wait(WAIT_SECONDS) for event in awaited):
            pass
        if self.ended.is_set() or self.current.collection is not collection:
            raise _GivenUpError

    @contextmanager
    def _show_progress(self, _stage: str, total: int) -> Iterator[Callable[[int], None]]:
        """A `StageProgress` that is shown beside the question."""

        def tick(done: int) -> None:
            self.current.show_progress(f"I search by words until all vectors are made: {done} of {total} passages")

        tick(0)
        yield tick
