"""Vectors for the passages of an index: made when a small one is built, or asked for by `convagent index embed`."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from indexes.open_index import open_index
from indexes.passage_index import PassageIndex
from indexes.ranking.compressed_vectors import CompressedInfo, check_compressed_vectors, write_compressed_vectors
from indexes.ranking.vector_writing import VectorPart, open_vector_part
from indexes.ranking.vectors import Embedder, StoredVectors, VectorCache, VectorInfo, check_vectors
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from schemas.errors import InvalidInputError, UsageError
from schemas.progress import StageProgress

MAX_UNASKED = 20_000  # passages that are embedded without being asked: some minutes on two cores
BATCH_TEXTS = 64  # embedded between two signs of progress
Tick = Callable[[int], None]  # is told how many more passages are embedded
# Makes the vectors of blocks of passages, given by their numbers: one result for each block, in their order.
EmbedBlocks = Callable[[Sequence[range], Tick], Iterator[StoredVectors]]
# Opens what makes the vectors of the index in a directory; of None, this process does.
OpenBlocks = Callable[[Path], AbstractContextManager[EmbedBlocks | None]]
log = logging.getLogger("convagent")


def embed_index(
    directory: Path,
    embedder: Embedder | None,
    progress: StageProgress,
    most: int | None = None,
    *,
    anew: bool = False,
    open_blocks: OpenBlocks = lambda _: nullcontext(),
) -> int:
    """Embed the passages of an index, unless there are more than `most`. How many have their vectors then.

    Vectors of this model that are whole stay, unless they are to be made `anew`; what was interrupted goes on.
    `open_blocks` opens, for each part of the index, what embeds elsewhere than here. None are made without a model;
    `UsageError` where there should be one (`most` is None).
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
    for part in map(PassageIndex, index.part_directories):
        _embed_part(part, embedder, progress, anew=anew, others_may=most is not None, open_blocks=open_blocks)
    return len(index)


def _embed_part(
    index: PassageIndex,
    embedder: Embedder,
    progress: StageProgress,
    *,
    anew: bool,
    others_may: bool,
    open_blocks: OpenBlocks,
) -> None:
    """Embed an index that is in one part."""
    info = VectorInfo(embedder.name, embedder.digest, embedder.size, len(index), index.info.contents)
    with open_vector_part(index.directory, info, others_may=others_may) as part:
        if anew or part.blocks or not has_whole_vectors(index, embedder):
            with open_blocks(index.directory) as embed_blocks:
                _embed_missing(part, embed_blocks or _embed_here(index, embedder), progress)


def compress_index(directory: Path, progress: StageProgress) -> CompressedInfo:
    """Compress the vectors that an index has, unless they are so already. Errors: `write_compressed_vectors`."""
    for part in map(PassageIndex, open_index(directory).part_directories):
        assert part.vector_info
        if not _find_whole_compressed(part):
            with progress("compressing", len(part)) as show:
                write_compressed_vectors(part.directory, part.vector_info, show)
    compressed = open_index(directory).compressed_info
    assert compressed
    return compressed


def _find_whole_compressed(index: PassageIndex) -> CompressedInfo | None:
    try:
        if index.compressed_info:
            check_compressed_vectors(index.directory, index.compressed_info)
    except InvalidInputError as error:
        log.warning("%s", error.what)
        return None
    return index.compressed_info


def has_whole_vectors(index: PassageIndex, embedder: Embedder) -> bool:
    """Whether an index has vectors of this model, as they were written."""
    try:
        info = index.vector_info
        if info is None or info.digest != embedder.digest or not info.is_sealed:
            return False
        check_vectors(index.directory, info)
    except InvalidInputError as error:
        log.warning("%s", error.what)
        return False
    return True


def _embed_missing(part: VectorPart, embed_blocks: EmbedBlocks, progress: StageProgress) -> None:
    """Embed what is missing of a part, and put it in place."""
    total, before = part.info.passages, part.passages
    if before:
        log.info("%s: goes on after %d of %d passages", part.directory, before, total)
    try:
        with progress("embedding", total - before) as show:
            done = 0

            def tick(more: int) -> None:
                nonlocal done
                done += more
                show(done)

            for rows in embed_blocks(part.missing, tick):
                part.append(rows)
        part.put_in_place()
    except BaseException:
        if part.blocks and part.is_kept:
            what = "%s: %d of %d passages are embedded and kept; `convagent index embed` goes on after them"
            log.warning(what, part.directory, part.passages, total)
        raise


def _embed_here(index: PassageIndex, embedder: Embedder) -> EmbedBlocks:
    def embed_blocks(blocks: Sequence[range], tick: Tick) -> Iterator[StoredVectors]:
        return (embed_block(index, embedder, block, tick) for block in blocks)

    return embed_blocks


def embed_block(index: PassageIndex, embedder: Embedder, block: range, tick: Tick) -> StoredVectors:
    """The vectors of some passages of an index, by their numbers."""
    made = np.empty((len(block), embedder.size), dtype=np.float16)
    for start in range(0, len(block), BATCH_TEXTS):
        texts = list(index.iterate_texts(block[start : start + BATCH_TEXTS]))
        made[start : start + BATCH_TEXTS] = embedder.embed(texts)
        tick(len(texts))
    return made


def cache_vectors(embedder: Embedder) -> Embedder:
    """The same model, the vectors of texts kept among the user's caches."""
    if isinstance(embedder, VectorCache):
        return embedder
    return VectorCache(embedder, Cache(find_cache_directory() / "vectors.sqlite"))
