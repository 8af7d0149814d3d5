"""Vectors for the passages of an index: made when a small one is built, or asked for by `convagent index embed`.

What is finished stands in `vectors.part`, block by block; `vectors.part.json` describes it, and is as `vectors.json`
once all blocks are there.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from indexes.passage_index import Index, PassageIndex
from indexes.ranking.compressed_vectors import COMPRESSED_FILE, write_compressed_vectors
from indexes.ranking.vectors import (
    VALUE_BYTES,
    VECTOR_INFO_FILE,
    VECTORS_FILE,
    Embedder,
    StoredVectors,
    VectorInfo,
    check_vectors,
    hash_block,
    keep_vectors,
    seal_info,
    split_rows,
)
from indexes.sharding.sharded_index import open_index
from indexes.storage.atomic_files import hold_directory, sync_to_disk
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from indexes.storage.files import explain_failed_writing, write_json_atomically
from schemas.errors import InvalidInputError, UsageError
from schemas.wire import decode

PART_FILE, PART_INFO_FILE = "vectors.part", "vectors.part.json"


@dataclass(slots=True)
class _VectorPart:
    """The finished blocks of an index's new vectors."""

    directory: Path  # of the index
    info: VectorInfo  # with the checksums of these blocks

    @property
    def missing(self) -> Sequence[range]:
        return split_rows(self.info.passages)[len(self.info.blocks) :]

    @property
    def passages(self) -> int:
        return self.info.passages - sum(map(len, self.missing))

    def append(self, rows: StoredVectors) -> None:
        data = rows.tobytes()
        with (self.directory / PART_FILE).open("ab") as file:
            file.write(data)
        sync_to_disk(self.directory / PART_FILE)
        self.info = seal_info(replace(self.info, blocks=(*self.info.blocks, hash_block(data))))
        write_json_atomically(self.directory / PART_INFO_FILE, self.info)

    def remove_if_empty(self) -> None:
        if not self.info.blocks:
            for name in (PART_FILE, PART_INFO_FILE):
                (self.directory / name).unlink(missing_ok=True)

    def put_in_place(self) -> None:
        """Let the vectors, all of whose blocks are there, be those of the index."""
        for name in (VECTOR_INFO_FILE, COMPRESSED_FILE):  # these are of the old ones
            (self.directory / name).unlink(missing_ok=True)
        for part, name in ((PART_FILE, VECTORS_FILE), (PART_INFO_FILE, VECTOR_INFO_FILE)):
            (self.directory / part).replace(self.directory / name)
            sync_to_disk(self.directory)


def _find_part(directory: Path, info: VectorInfo) -> _VectorPart:
    """What is finished of the vectors that `info` describes: the blocks up to which all is as it was described."""
    path = directory / PART_FILE
    if not path.exists() and not (directory / VECTOR_INFO_FILE).exists():
        with suppress(FileNotFoundError):  # put in place and never described: the process was ended in between
            (directory / VECTORS_FILE).rename(path)
    found = info
    with suppress(OSError, msgspec.DecodeError):
        found = decode((directory / PART_INFO_FILE).read_bytes(), VectorInfo)
    part = _VectorPart(directory, info)
    with suppress(FileNotFoundError), path.open("r+b") as rows:
        if replace(found, blocks=(), seal="") == info:
            for block, checksum in zip(split_rows(info.passages), found.blocks, strict=False):
                if hash_block(rows.read(len(block) * info.size * VALUE_BYTES)) != checksum:
                    break
                part.info = replace(part.info, blocks=(*part.info.blocks, checksum))
        rows.truncate(part.passages * info.size * VALUE_BYTES)
    part.remove_if_empty()
    return part


MAX_UNASKED = 20_000  # passages that are embedded without being asked: some minutes on two cores
BATCH_TEXTS = 8  # embedded between two signs of progress, at which whoever shows it may wait
# A stage's name and how many things it has; entering gives a function that is called with how many are done.
StageProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
Tick = Callable[[int], None]  # is told how many more passages are embedded
log = logging.getLogger("convagent")


def embed_index(
    directory: Path,
    embedder: Embedder | None,
    progress: StageProgress,
    most: int | None = None,
    *,
    anew: bool = False,
) -> int:
    """Embed the passages of an index, unless there are more than `most`. How many have their vectors then.

    Vectors of this model that are whole stay, unless they are to be made `anew`; what was interrupted goes on.
    None are made without a model; `UsageError` where there should be one (`most` is None), or where another process
    makes them.
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
    try:
        for part in map(PassageIndex, index.part_directories):
            _embed_part(part, embedder, progress, anew=anew)
    except UsageError as error:
        if most is None:
            raise
        log.info("%s", error)
        return 0
    return len(index)


def _embed_part(index: PassageIndex, embedder: Embedder, progress: StageProgress, *, anew: bool) -> None:
    info = VectorInfo(embedder.name, embedder.digest, embedder.size, len(index), index.info.contents)
    with hold_directory(index.directory) as is_ours:
        if not is_ours:
            remedy = "Wait for it: one process at a time makes the vectors of an index."
            raise UsageError("another process is embedding this index", where=str(index.directory), remedy=remedy)
        with explain_failed_writing(index.directory):
            part = _find_part(index.directory, info)
            if anew or part.info.blocks or not has_whole_vectors(index, embedder):
                _embed_missing(part, index, embedder, progress)


def compress_index(directory: Path, progress: StageProgress) -> int:
    """Compress the vectors that an index has: to how many bytes. Errors: `write_compressed_vectors`."""
    size = 0
    for part in map(PassageIndex, open_index(directory).part_directories):
        with progress("compressing", len(part)) as show:
            size += write_compressed_vectors(part.directory, part.vector_infos[0], show)
    return size


def has_whole_vectors(index: Index, embedder: Embedder) -> bool:
    """Whether an index in one part has vectors of this model, as they were written. Damage is logged."""
    try:
        for info in index.vector_infos:
            if info.digest == embedder.digest:
                check_vectors(index.directory, info)
                return True
    except InvalidInputError as error:
        log.warning("%s", error.what)
    return False


def _embed_missing(part: _VectorPart, index: PassageIndex, embedder: Embedder, progress: StageProgress) -> None:
    """Embed what is missing of a part, and put it in place."""
    total, before, done = part.info.passages, part.passages, 0

    def tick(more: int) -> None:
        nonlocal done
        done += more
        show(done)

    if before:
        log.info("%s: goes on after %d of %d passages", part.directory, before, total)
    try:
        with progress("embedding", total - before) as show:
            for block in part.missing:
                part.append(_embed_block(index, embedder, block, tick))
        part.put_in_place()
    except BaseException:
        if part.info.blocks:
            what = "%s: %d of %d passages are embedded and kept; `convagent index embed` goes on after them"
            log.warning(what, part.directory, part.passages, total)
        part.remove_if_empty()
        raise


def _embed_block(index: PassageIndex, embedder: Embedder, block: range, tick: Tick) -> StoredVectors:
    made = np.empty((len(block), embedder.size), dtype=np.float16)
    for start in range(0, len(block), BATCH_TEXTS):
        texts = index.read_texts(block[start : start + BATCH_TEXTS])
        made[start : start + BATCH_TEXTS] = embedder.embed(texts)
        tick(len(texts))
    return made


def cache_vectors(embedder: Embedder) -> Embedder:
    """The same model, the vectors of texts kept among the user's caches."""
    return embedder if embedder.uncached else keep_vectors(embedder, Cache(find_cache_directory() / "vectors.sqlite"))
