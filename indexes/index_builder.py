"""Building a passage index from a corpus in one pass and in bounded memory."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from indexes.corpora.corpus import Corpus, Item
from indexes.passage_index import FORMAT
from indexes.passage_writer import PassageWriter, encode_passage, seal_index
from indexes.sharding.shard_files import holds_index
from indexes.storage.atomic_files import replace_directory, resolve_replaced
from indexes.text.analysis import describe_analyzer
from schemas.errors import InvalidInputError, RunError, UsageError
from schemas.records import IndexInfo, Passage, Problem

Digests = npt.NDArray[np.uint64]
FILTER_BITS = 29  # the filter has 2**29 bits: 64 MiB
RUN_DIGESTS = 1 << 20  # in a run of the file: 8 MiB


class SeenIds:
    """The ids recorded so far. Uses a file at `path` while it is open, and deletes it at the end."""

    def __init__(self, path: Path, run: int = RUN_DIGESTS, filter_bits: int = FILTER_BITS) -> None:
        self._path, self._run, self._shift = path, run, np.uint64(64 - filter_bits)
        self._filter = np.zeros(1 << (filter_bits - 3), dtype=np.uint8)
        self._latest: list[Digests] = []  # the runs in memory
        self._ends = [0]  # of the runs in the file
        self._file = path.open("wb")

    def __enter__(self) -> "SeenIds":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink()

    def record_ids(self, ids: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Record a block of ids. For each, whether it was there before: in an earlier block, or earlier in this one."""
        digests, first = np.unique(_hash_ids(ids), return_index=True)
        is_duplicate = np.ones(len(ids), dtype=np.bool_)
        is_duplicate[first] = self._find_recorded(digests)
        self._record_digests(digests[~is_duplicate[first]])
        return is_duplicate

    def _find_recorded(self, digests: Digests) -> npt.NDArray[np.bool_]:
        recorded = self._match_filter(digests)
        unsure = digests[recorded]
        if unsure.size:
            found = np.zeros(len(unsure), dtype=np.bool_)
            for run in self._read_runs():
                found |= run[np.minimum(run.searchsorted(unsure), len(run) - 1)] == unsure
            recorded[recorded] = found
        return recorded

    def _match_filter(self, digests: Digests) -> npt.NDArray[np.bool_]:
        """False for digests that are certainly new."""
        matches = np.ones(len(digests), dtype=np.bool_)
        for places in self._locate_bits(digests):
            matches &= (self._filter[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)) & 1 == 1
        return matches

    def _locate_bits(self, digests: Digests) -> tuple[Digests, Digests]:
        """The two bits of each digest in the filter."""
        return digests >> self._shift, (digests << self._shift) >> self._shift

    def _read_runs(self) -> Iterator[Digests]:
        """All runs. Those of the file are mapped one at a time, so that they do not stay in memory."""
        yield from self._latest
        for start, end in pairwise(self._ends):
            yield np.memmap(self._path, dtype=np.uint64, mode="r", offset=8 * start, shape=(end - start,))

    def _record_digests(self, digests: Digests) -> None:
        for places in self._locate_bits(digests):
            bits = np.left_shift(np.uint8(1), (places & np.uint64(7)).astype(np.uint8))
            np.bitwise_or.at(self._filter, places >> np.uint64(3), bits)
        if digests.size:
            self._latest.append(digests)
        if sum(map(len, self._latest)) >= self._run:
            run = np.sort(np.concatenate(self._latest))
            run.tofile(self._file)
            self._file.flush()
            self._ends.append(self._ends[-1] + len(run))
            self._latest.clear()


def _hash_ids(ids: Sequence[str]) -> Digests:
    blake = hashlib.blake2b
    return np.frombuffer(b"".join([blake(id.encode("utf-8", "replace"), digest_size=8).digest() for id in ids]), ">u8")


SEEN_IDS_FILE = "ids.seen"  # there only while the index is built
MAX_PROBLEMS_KEPT = 1000
BLOCK_PASSAGES, BLOCK_CHARACTERS = 4096, 8_000_000  # that are in memory at once, at most
MAX_ID_CHARACTERS = 1000  # Tantivy silently leaves out a term of more than 64 KB
FULL_DISK_SIGNS = "os error", "writer was killed"  # in Tantivy's ValueError, which it raises for everything


def ignore_passage(_passage: Passage) -> None:
    """Do nothing with a passage: the default of `build_index`."""


@dataclass(slots=True)
class BuildReport:
    """What came of a build: the index's info, and the first `MAX_PROBLEMS_KEPT` problems."""

    info: IndexInfo
    problems: list[Problem] = field(default_factory=list)


def build_index(
    corpus: Corpus,
    out: Path,
    *,
    skip_problems: bool,
    overwrite: bool = False,
    progress: Callable[[], None],
    on_passage: Callable[[Passage], None] = ignore_passage,
) -> BuildReport:
    """Index a corpus into the directory `out`, which appears whole or not at all.

    Bad lines, empty texts and duplicate ids stop the build (`InvalidInputError`), or are counted and skipped.
    `progress` is called now and then, and `on_passage` with each passage that is indexed. Memory: a block of the
    corpus, the writer's buffers, what `SeenIds` needs to find duplicates, and the segments that Tantivy merges.
    """
    check_replaceable(resolve_replaced(out), overwrite)
    reading = CorpusReading(corpus, skip_problems=skip_problems, progress=progress)
    with explain_failed_writing(out), replace_directory(out) as building:
        with PassageWriter(building, corpus.languages) as writer:
            for passage, encoded in reading.iterate_passages(building):
                writer.write(passage, encoded)
                on_passage(passage)
        info = reading.describe(writer.count, writer.contents)
        seal_index(building, info)
    return BuildReport(info, reading.problems)


@contextmanager
def explain_failed_writing(out: Path) -> Iterator[None]:
    """What is raised where an index cannot be written, as a `RunError`."""
    try:
        yield
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(out)) from error
    except ValueError as error:
        if not any(sign in str(error) for sign in FULL_DISK_SIGNS):
            raise
        raise RunError(f"could not be written ({error})", where=str(out), remedy="Is the disk full?") from error


def check_replaceable(out: Path, overwrite: bool) -> None:
    """Raise `UsageError` unless `out` is missing, or is an index or an empty directory that may be overwritten."""
    if not out.exists():
        return
    if not overwrite:
        raise UsageError("exists already", where=str(out), remedy="Give --overwrite, or another directory.")
    if not out.is_dir() or (any(out.iterdir()) and not holds_index(out)):
        raise UsageError("is no index, so it is not replaced by one", where=str(out), remedy="Give another directory.")


class CorpusReading:
    """One pass through a corpus, in which what cannot be indexed is found."""

    def __init__(self, corpus: Corpus, *, skip_problems: bool, progress: Callable[[], None]) -> None:
        self.corpus, self._skip_problems, self._progress = corpus, skip_problems, progress
        self._started = time.perf_counter()
        self._hashed = hashlib.blake2b(digest_size=16)
        self.count, self.skipped = 0, 0
        self.problems: list[Problem] = []  # the first

    @property
    def contents(self) -> str:
        """`IndexInfo.contents` of all passages so far."""
        return self._hashed.hexdigest()

    def iterate_passages(self, scratch: Path) -> Iterator[tuple[Passage, bytes]]:
        """The passages that are indexed, with what `encode_passage` makes of them. `scratch` is a directory.

        Raises `InvalidInputError` for the first problem, unless they are skipped, and where there is no passage.
        """
        with SeenIds(scratch / SEEN_IDS_FILE) as seen_ids:
            for block in _split_into_blocks(self.corpus):
                for path, line, found in _check_block(block, seen_ids):
                    if isinstance(found, str):
                        self._note_problem(Problem(f"{path}:{line}", found))
                        continue
                    encoded = encode_passage(found)
                    self._hashed.update(encoded + b"\n")
                    self.count += 1
                    yield found, encoded
                self._progress()
        if not self.count:
            raise InvalidInputError("holds no passage", where=", ".join(map(str, self.corpus.files)))

    def describe(self, passages: int, contents: str) -> IndexInfo:
        """The info of an index of so many of the passages, which have this digest."""
        return IndexInfo(
            passages=passages,
            skipped=self.skipped,
            sources=tuple(map(str, self.corpus.files)),
            analyzer=describe_analyzer(self.corpus.languages),
            segmentation=str(self.corpus.segmentation or ""),
            seconds=round(time.perf_counter() - self._started, 2),
            made_by=f"tantivy {version('tantivy')}",
            format=FORMAT,
            contents=contents,
        )

    def _note_problem(self, problem: Problem) -> None:
        if not self._skip_problems:
            remedy = "Mend the file, or give --on-error skip to leave such passages out and have them listed."
            raise InvalidInputError(problem.what, where=problem.where, remedy=remedy)
        self.skipped += 1
        if self.skipped <= MAX_PROBLEMS_KEPT:
            self.problems.append(problem)


def _split_into_blocks(corpus: Iterable[Item]) -> Iterator[list[Item]]:
    """The corpus in blocks of a few thousand passages, or fewer long ones."""
    block: list[Item] = []
    characters = 0
    try:
        for item in corpus:
            block.append(item)
            characters += len(item[2].text) if isinstance(item[2], Passage) else 0
            if len(block) >= BLOCK_PASSAGES or characters >= BLOCK_CHARACTERS:
                yield block
                block, characters = [], 0
    except InvalidInputError:
        yield block  # so that problems of these are reported first
        raise
    yield block


def _check_block(block: Sequence[Item], seen_ids: SeenIds) -> Iterator[Item]:
    """The items of a block; a passage with a duplicate or unusable id is replaced by what is wrong with it."""
    ids = [found.id for _, _, found in block if isinstance(found, Passage)]
    duplicates = iter(seen_ids.record_ids(ids).tolist())
    for path, line, found in block:
        problem = _explain_bad_id(found.id, next(duplicates)) if isinstance(found, Passage) else ""
        yield path, line, problem or found


def _explain_bad_id(id: str, is_duplicate: bool) -> str:
    if len(id) > MAX_ID_CHARACTERS:
        return f"an id of {len(id)} characters, at most {MAX_ID_CHARACTERS} are allowed: {id[:40]!r}..."
    return f"the id {id!r} was seen before" if is_duplicate else ""
