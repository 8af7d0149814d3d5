"""Building a passage index from a corpus in one pass, whole or in shards.

Passages are dealt out to shards in turn. Who builds one shard reads the whole corpus all the same: a passage's place
follows from those before it, and an id that was seen before is found wherever it was.
"""

import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import tantivy

from indexes.corpora.corpus import Corpus
from indexes.passage_index import (
    DATES_FILE,
    FORMAT,
    INFO_FILE,
    build_schema,
    build_searchable_text,
    is_english,
    register_analyzer,
)
from indexes.processors import logical_cores
from indexes.sharding.sharded_index import find_counts, holds_index, name_shard, read_joined_info
from indexes.storage.atomic_files import replace_directory, resolve_replaced
from indexes.storage.files import explain_failed_writing, write_manifest
from indexes.text.analysis import describe_analyzer, extract_stems
from indexes.text.sentences import SEGMENTATION
from schemas.errors import InvalidInputError, RunError, UsageError, format_count
from schemas.records import IndexInfo, Passage, Problem, Shard

Parts = int | tuple[int, int] | None  # so many shards, or one of how many; None: no shards
THREAD_BYTES = 64_000_000  # of the buffer that a thread of Tantivy fills before it writes a segment
LEAST_THREAD_BYTES = 16_000_000  # Tantivy asks for 15
MAX_SHARDS = 1000
MAX_PROBLEMS_KEPT = 1000
LATEST_IDS = 500_000  # whose digests are in a set
PROGRESS_PASSAGES = 1000  # between two signs of progress
MAX_ID_CHARACTERS = 1000  # Tantivy silently leaves out a term of more than 64 KB
FULL_DISK_SIGNS = "os error", "writer was killed"  # in Tantivy's ValueError, which it raises for everything


@dataclass(frozen=True, slots=True)
class BuildReport:
    info: IndexInfo
    problems: Sequence[Problem]  # the first


def choose_parts(shards: int | None, shard: str | None) -> Parts:
    """How a collection is divided, by `--shards` and `--shard`. Raises `UsageError`."""
    if shards is not None and shard is not None:
        remedy = "Give --shards 8 to build all of them here, or --shard 3/8 to build one."
        raise UsageError("--shards and --shard exclude each other", remedy=remedy)
    if shard is None:
        return shards
    found = re.fullmatch(r"(\d+)/(\d+)", shard)
    if not found or not 1 <= int(found[1]) <= int(found[2]) <= MAX_SHARDS:
        remedy = f"Give which of how many, as in --shard 3/8; at most {MAX_SHARDS}."
        raise UsageError(f"{shard!r} is no shard", remedy=remedy)
    return int(found[1]), int(found[2])


def build_index(
    corpus: Corpus,
    out: Path,
    parts: Parts = None,
    *,
    skip_problems: bool = False,
    overwrite: bool = False,
    progress: Callable[[], None] = lambda: None,
    on_passage: Callable[[Passage], object] = lambda _passage: None,
) -> BuildReport:
    """Index a corpus into the directory `out`, which appears whole or not at all, as does a single shard in it.

    Bad lines, empty texts and duplicate ids stop the build (`InvalidInputError`), or are counted and skipped.
    `on_passage` is called with each passage that is indexed. Memory: the writers' buffers, the digests of all ids, and
    the segments that Tantivy merges.
    """
    number, of = parts if isinstance(parts, tuple) else (0, parts or 1)
    if number and (find_counts(out) - {of} or (out / INFO_FILE).exists()):
        raise UsageError("holds another index", where=str(out), remedy="Give another directory.")
    target = out / name_shard(number, of) if number else out
    _check_replaceable(resolve_replaced(target), overwrite)
    reading = _CorpusReading(corpus, skip_problems=skip_problems, progress=progress)
    with explain_failed_writing(target), _explain_full_disk(target), replace_directory(target) as building:
        if parts is None or number:
            directories = {number: building}
        else:
            directories = {each: building / name_shard(each, of) for each in range(1, of + 1)}
        infos = _write_parts(reading, directories, of, on_passage)
        info = read_joined_info([*directories.values()]) if isinstance(parts, int) else infos[0]
    return BuildReport(info, reading.problems)


def _check_replaceable(out: Path, overwrite: bool) -> None:
    """Raise `UsageError` unless `out` is missing, or is an index or an empty directory that may be overwritten."""
    if not out.exists():
        return
    if not overwrite:
        raise UsageError("exists already", where=str(out), remedy="Give --overwrite, or another directory.")
    if not out.is_dir() or (any(out.iterdir()) and not holds_index(out)):
        raise UsageError("is no index, so it is not replaced by one", where=str(out), remedy="Give another directory.")


@contextmanager
def _explain_full_disk(out: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if not any(sign in str(error) for sign in FULL_DISK_SIGNS):
            raise
        raise RunError(f"could not be written ({error})", where=str(out), remedy="Is the disk full?") from error


def _write_parts(
    reading: "_CorpusReading", directories: Mapping[int, Path], of: int, on_passage: Callable[[Passage], object]
) -> list[IndexInfo]:
    """Write an index (number 0), or some of so many shards, each into its directory: what each holds."""
    corpus, started = reading.corpus, time.perf_counter()
    threads = logical_cores() if len(directories) == 1 else 1
    memory = max(LEAST_THREAD_BYTES, THREAD_BYTES * logical_cores() // (threads * len(directories)))
    with ExitStack() as stack:
        writers = {
            number: stack.enter_context(_PartWriter(directory, corpus.languages, threads, memory))
            for number, directory in directories.items()
        }
        for place, (passage, encoded) in enumerate(reading.iterate_passages()):
            on_passage(passage)
            if writer := writers.get(place % of + 1) or writers.get(0):
                writer.write(passage, encoded)
        if reading.count < of:
            what = f"holds {format_count(reading.count, 'passage')}, too few for {of} shards"
            raise InvalidInputError(what, where=", ".join(map(str, corpus.files)))
    infos = []
    for number, writer in writers.items():
        info = IndexInfo(
            passages=writer.count,
            skipped=reading.skipped,
            sources=tuple(map(str, corpus.files)),
            analyzer=describe_analyzer(corpus.languages),
            segmentation=SEGMENTATION if corpus.segment else "",
            seconds=round(time.perf_counter() - started, 2),
            made_by=f"tantivy {version('tantivy')}",
            format=FORMAT,
            contents=writer.hashed.hexdigest(),
            shard=Shard(number, of, reading.count, reading.hashed.hexdigest()) if number else None,
        )
        (writer.directory / INFO_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(info)))
        write_manifest(writer.directory)
        infos.append(info)
    return infos


class SeenIds:
    """The digests of the ids recorded so far, 8 bytes each: the latest in a set, those before in a sorted array."""

    def __init__(self) -> None:
        self._latest: set[int] = set()
        self._sorted: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def record(self, id: str) -> bool:
        """Record an id. Whether it was there before."""
        hashed = hashlib.blake2b(id.encode("utf-8", "replace"), digest_size=8).digest()
        digest = int.from_bytes(hashed)
        place = self._sorted.searchsorted(np.uint64(digest))
        if digest in self._latest or (self._sorted[place : place + 1] == digest).any():
            return True
        self._latest.add(digest)
        if len(self._latest) == LATEST_IDS:
            latest = np.sort(np.fromiter(self._latest, dtype=np.uint64))
            self._sorted = np.sort(np.concatenate([self._sorted, latest]), kind="stable")  # merges what is sorted
            self._latest.clear()
        return False


class _CorpusReading:
    """One pass through a corpus, in which what cannot be indexed is found."""

    def __init__(self, corpus: Corpus, *, skip_problems: bool, progress: Callable[[], None]) -> None:
        self.corpus, self._skip_problems, self._progress = corpus, skip_problems, progress
        self.hashed = hashlib.blake2b(digest_size=16)  # of all passages so far: `IndexInfo.contents`
        self.count, self.skipped = 0, 0
        self.problems: list[Problem] = []  # the first

    def iterate_passages(self) -> Iterator[tuple[Passage, bytes]]:
        """The passages that are indexed, as JSON, too.

        Raises `InvalidInputError` for the first problem, unless they are skipped, and where there is no passage.
        """
        seen_ids = SeenIds()
        for number, (path, line, found) in enumerate(self.corpus):
            if number % PROGRESS_PASSAGES == 0:
                self._progress()
            problem = found if isinstance(found, str) else _explain_bad_id(found.id, seen_ids.record(found.id))
            if problem or isinstance(found, str):
                if not self._skip_problems:
                    remedy = "Mend the file, or give --on-error skip to leave such passages out and have them listed."
                    raise InvalidInputError(problem, where=f"{path}:{line}", remedy=remedy)
                self.skipped += 1
                if self.skipped <= MAX_PROBLEMS_KEPT:
                    self.problems.append(Problem(f"{path}:{line}", problem))
                continue
            encoded = msgspec.json.encode(found)
            self.hashed.update(encoded + b"\n")
            self.count += 1
            yield found, encoded
        self._progress()
        if not self.count:
            raise InvalidInputError("holds no passage", where=", ".join(map(str, self.corpus.files)))


def _explain_bad_id(id: str, is_duplicate: bool) -> str:
    if len(id) > MAX_ID_CHARACTERS:
        return f"an id of {len(id)} characters, at most {MAX_ID_CHARACTERS} are allowed: {id[:40]!r}..."
    return f"the id {id!r} was seen before" if is_duplicate else ""


class _PartWriter(AbstractContextManager["_PartWriter"]):
    """The files of an index in a directory, whole but for its info once the block has ended well."""

    def __init__(self, directory: Path, languages: Sequence[str], threads: int, thread_bytes: int) -> None:
        self.directory, self._gives_stems = directory, not is_english(languages)
        directory.mkdir(exist_ok=True)
        index = tantivy.Index(build_schema(), path=str(directory))
        register_analyzer(index, languages)
        self._writer = index.writer(thread_bytes * threads, threads)
        self.count, self._position = 0, 0  # passages so far, and the bytes of their ids
        self._ids, self._offsets = ((directory / name).open("wb") for name in ("ids.txt", "ids.offsets"))
        self._offsets.write(bytes(8))
        self.hashed = hashlib.blake2b(digest_size=16)
        self._dates: dict[int, str] = {}  # only documents have them

    def __exit__(self, error: object, *_: object) -> None:
        """Commit, or roll back where the block failed; Tantivy's threads end either way."""
        is_whole = False
        try:
            self._ids.close()
            self._offsets.close()
            if error is None:
                if self._dates:
                    (self.directory / DATES_FILE).write_bytes(msgspec.json.encode(self._dates))
                self._writer.commit()
                self._writer.wait_merging_threads()
                is_whole = True
        finally:
            for end in () if is_whole else (self._writer.rollback, self._writer.wait_merging_threads):
                with suppress(BaseException):  # what failed first is told, and not what fails here, also by a panic
                    end()

    def write(self, passage: Passage, encoded: bytes) -> None:
        """Add a passage, which is kept as JSON. Tantivy is given its text, or its stems."""
        self.hashed.update(encoded + b"\n")
        text = build_searchable_text(passage)
        document = tantivy.Document()
        document.add_unsigned("number", self.count)
        document.add_text("id", passage.id)
        document.add_text("body", " ".join(extract_stems(text, passage.language)) if self._gives_stems else text)
        document.add_bytes("passage", encoded)
        self._writer.add_document(document)
        if passage.date:
            self._dates[self.count] = passage.date
        self._position += self._ids.write(passage.id.encode("utf-8", "replace"))
        self._offsets.write(self._position.to_bytes(8, sys.byteorder))
        self.count += 1
