"""Writing the vectors of an index block by block: what was interrupted goes on after the last whole block.

The index keeps the vectors that it has until the new ones are whole. These stand in `vectors.part`; `vectors.journal`
says what they are vectors of, and then the checksum of each finished block, a line each. A block is on the disk before
its line is. One process at a time writes them; where several may, the others make vectors of their own elsewhere.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import msgspec

from indexes.ranking.compressed_vectors import remove_compressed_vectors
from indexes.ranking.vectors import (
    VALUE_BYTES,
    VECTOR_INFO_FILE,
    VECTORS_FILE,
    StoredVectors,
    VectorInfo,
    hash_block,
    make_seal,
    split_rows,
)
from indexes.storage.atomic_files import lock_descriptor, scratch_directory, sync_to_disk, write_file_atomically
from schemas.errors import RunError, UsageError

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
