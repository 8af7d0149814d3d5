"""Vectors for the passages of an index: made when a small one is built, or asked for by `convagent index embed`."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import msgspec
import numpy as np

from indexes.passage_index import PassageIndex
from indexes.ranking.compressed_vectors import (
    CompressedInfo,
    check_compressed_vectors,
    remove_compressed_vectors,
    write_compressed_vectors,
)
from indexes.ranking.vectors import (
    VALUE_BYTES,
    VECTOR_INFO_FILE,
    VECTORS_FILE,
    Embedder,
    StoredVectors,
    VectorCache,
    VectorInfo,
    check_vectors,
    hash_block,
    make_seal,
    split_rows,
)
from indexes.sharding.sharded_index import open_index
from indexes.storage.atomic_files import lock_descriptor, scratch_directory, sync_to_disk, write_file_atomically
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from schemas.errors import InvalidInputError, RunError, UsageError
from schemas.progress import StageProgress

PART_FILE, JOURNAL_FILE = "vectors.part", "vectors.journal"


@contextmanager
def open_vector_part(directory: Path, info: VectorInfo, *, others_may: bool = False) -> Iterator["VectorPart"]:
    """What is finished of the vectors that `info` describes, to go on with.

    Where another process writes vectors of this index: `UsageError`, or, if `others_may`, a part that nobody goes on
    with. `RunError` where nothing can be written. What is finished stays; a part without a whole block does not.
    """
    with ExitStack() as stack:
        with _explain_failure(directory):
            place, journal = directory, _open_alone(directory / JOURNAL_FILE)
            if journal is None:
                place = _choose_other_place(directory, stack, others_may)
                journal = (place / JOURNAL_FILE).open("a+b", buffering=0)
            stack.enter_context(journal)
            _take_back(directory, place)
            rows = stack.enter_context((place / PART_FILE).open("a+b", buffering=0))
            part = VectorPart(info, directory, place, rows, journal)
            stack.callback(part.clear_away)
            part.find_finished_blocks()
        yield part


def _choose_other_place(directory: Path, stack: ExitStack, others_may: bool) -> Path:
    if others_may:
        return stack.enter_context(scratch_directory(directory / VECTORS_FILE))
    remedy = "Wait for it: one process at a time makes the vectors of an index."
    raise UsageError("another process is embedding this index", where=str(directory), remedy=remedy)


@contextmanager
def _explain_failure(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(directory)) from error


def _open_alone(path: Path) -> IO[bytes] | None:
    """A file, made where there is none, that no other process opens so until it is closed; None where one did."""
    while True:
        file = path.open("a+b", buffering=0)
        try:
            is_ours = lock_descriptor(file.fileno(), wait=False)
        except OSError:  # no such locks here
            return file
        if is_ours and _is_same_file(file, path):
            return file
        file.close()
        if not is_ours:
            return None


def _is_same_file(file: IO[bytes], path: Path) -> bool:
    """Whether the path still names that file: who had it before may have removed it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _take_back(directory: Path, place: Path) -> None:
    """Vectors that were put in place and never described, their process being ended in between, are a part again."""
    if place == directory and not (directory / VECTOR_INFO_FILE).exists() and not (place / PART_FILE).exists():
        with suppress(FileNotFoundError):
            (directory / VECTORS_FILE).rename(place / PART_FILE)


@dataclass(slots=True)
class VectorPart:
    """The finished blocks of an index's new vectors. Opened by `open_vector_part`."""

    info: VectorInfo
    directory: Path  # of the index
    place: Path  # of the files that are written
    _rows: IO[bytes]
    _journal: IO[bytes]
    blocks: list[str] = field(default_factory=list)  # their checksums

    @property
    def passages(self) -> int:
        """How many have their vectors."""
        return sum(map(len, self._all_blocks[: len(self.blocks)]))

    @property
    def missing(self) -> Sequence[range]:
        """The blocks that are to be made, by the numbers of their passages."""
        return self._all_blocks[len(self.blocks) :]

    @property
    def is_kept(self) -> bool:
        """Whether what is finished stays for another time."""
        return self.place == self.directory

    @property
    def _all_blocks(self) -> Sequence[range]:
        return split_rows(self.info.passages)

    def find_finished_blocks(self) -> None:
        """Keep the blocks up to which everything is as the journal has it; none where it is of other vectors."""
        self._journal.seek(0)
        header, *lines = self._journal.read().split(b"\n")
        if header + b"\n" == self._header:
            self.blocks = list(self._compare_blocks(lines))
        self._rows.truncate(self.passages * self.info.size * VALUE_BYTES)
        self._journal.truncate(0)
        _append(self._journal, self._header + b"".join(map(_to_line, self.blocks)))

    def _compare_blocks(self, lines: Sequence[bytes]) -> Iterator[str]:
        self._rows.seek(0)
        for block, line in zip(self._all_blocks, lines, strict=False):
            data = self._rows.read(len(block) * self.info.size * VALUE_BYTES)
            checksum = hash_block(data)
            if checksum.encode() != line:
                return
            yield checksum

    @property
    def _header(self) -> bytes:
        """What the vectors are of, in which blocks."""
        return msgspec.json.encode((len(self._all_blocks), self.info)) + b"\n"

    def append(self, rows: StoredVectors) -> None:
        """Write the next block. Raises `RunError` where it cannot be."""
        data = rows.tobytes()
        checksum = hash_block(data)
        with _explain_failure(self.directory):
            _append(self._rows, data)
            _append(self._journal, _to_line(checksum))
        self.blocks.append(checksum)

    def put_in_place(self) -> None:
        """Let the vectors, all of whose blocks are there, be those of the index. Raises `RunError`."""
        info = replace(self.info, blocks=tuple(self.blocks))
        described = msgspec.json.format(msgspec.json.encode(replace(info, seal=make_seal(info))))
        with _explain_failure(self.directory):
            self._rows.close()
            remove_compressed_vectors(self.directory)  # these are of the old ones
            (self.directory / VECTOR_INFO_FILE).unlink(missing_ok=True)
            (self.place / PART_FILE).replace(self.directory / VECTORS_FILE)
            sync_to_disk(self.directory)
            write_file_atomically(self.directory / VECTOR_INFO_FILE, lambda path: path.write_bytes(described))
        self.blocks = []

    def clear_away(self) -> None:
        """Remove the files where no block of them is of use."""
        if not self.blocks:
            self._rows.close()
            if os.name == "nt":  # where an open file cannot be removed; others keep their lock until it is
                self._journal.close()
            for name in (PART_FILE, JOURNAL_FILE):
                (self.place / name).unlink(missing_ok=True)


def _to_line(checksum: str) -> bytes:
    return checksum.encode() + b"\n"


def _append(file: IO[bytes], data: bytes) -> None:
    """Write at the end of a file, and hand it to the disk."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
    os.fsync(file.fileno())


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
