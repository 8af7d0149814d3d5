"""Vectors for the passages of an index: made when a small one is built, or asked for by `convagent index embed`."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from indexes.open_index import open_index
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder, VectorCache, write_vectors
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from schemas.errors import UsageError
from schemas.progress import StageProgress

MAX_UNASKED = 20_000  # passages that are embedded without being asked: some minutes on two cores
log = logging.getLogger("convagent")


def embed_index(directory: Path, embedder: Embedder | None, progress: StageProgress, most: int | None = None) -> int:
    """Embed the passages of an index, unless there are more than `most`. How many were.

    None of them without an embedding model; `UsageError` where there should be one.
    """
    index = open_index(directory)
    if embedder is None and most is None:
        raise UsageError("there is no embedding model to embed with", remedy="Give one with --embedder PATH.gguf.")
    if embedder is None:
        return 0
    if most is not None and len(index) > most:
        what = f"{len(index)} passages are too many to embed unasked: the best hits will be, as they are found"
        log.info("%s (`convagent index embed %s` makes all vectors)", what, directory)
        return 0
    done = 0
    with progress("embedding", len(index)) as tick:
        for part in map(PassageIndex, index.part_directories):
            texts = list(part.iterate_texts())
            write_vectors(part.directory, part.info.contents, texts, embedder, partial(_tick_after, tick, done))
            done += len(texts)
    return done


def _tick_after(tick: Callable[[int], None], before: int, done: int) -> None:
    """Tell progress of one of several parts."""
    tick(before + done)


def cache_vectors(embedder: Embedder) -> Embedder:
    """The same model, the vectors of texts kept among the user's caches."""
    if isinstance(embedder, VectorCache):
        return embedder
    return VectorCache(embedder, Cache(find_cache_directory() / "vectors.sqlite"))
