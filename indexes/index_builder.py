"""Building a passage index from a corpus, in one go and in bounded memory."""

import array
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from indexes.corpora.corpus import Corpus, Item
from indexes.passage_index import INFO_FILE, _make_schema, _register_analyzer, searchable_text
from indexes.processors import logical_cores
from indexes.storage.atomic_files import replace_directory, resolve_replaced
from indexes.storage.duplicate_ids import SeenIds
from indexes.text.analysis import ANALYZER
from schemas.errors import InvalidInputError, RunError, UsageError
from schemas.records import IndexInfo, Passage, Problem

SEEN_FILE = "ids.seen"  # while it is built
MAX_PROBLEMS_KEPT = 1000
BLOCK_PASSAGES, BLOCK_CHARACTERS = 4096, 8_000_000  # passages that are in memory at once, at most
LONGEST_ID = 1000  # characters: Tantivy leaves a term of more than 64 KB out, without a word
WRITER_BYTES_PER_THREAD = 64_000_000
FULL_DISK_SIGNS = "os error", "writer was killed"  # in the ValueError that Tantivy has for everything


def ignore_passage(_passage: Passage) -> None:
    """Nobody looks."""


@dataclass(slots=True)
class BuildReport:
    """What came of a build: its info, and every problem met (the first `MAX_PROBLEMS_KEPT`)."""

    info: IndexInfo
    problems: list[Problem] = field(default_factory=list)


def build_index(
    corpus: Corpus,
    out: Path,
    *,
    skip_problems: bool,
    overwrite: bool = False,
    progress: Callable[[], None],
    seen: Callable[[Passage], None] = ignore_passage,
) -> BuildReport:
    """Index a corpus into the directory `out`, which appears whole or not at all.

    Bad lines, empty texts and ids seen before stop the build (`InvalidInputError`), or are counted and skipped.
    `progress` is called now and then; `seen` is told each passage that goes in. Memory: a block of the corpus, the
    writer's buffers, what `SeenIds` keeps to know duplicates, and what Tantivy holds of the segments that it merges.
    """
    _check_replaceable(resolve_replaced(out), overwrite)
    started = time.perf_counter()
    try:
        with replace_directory(out) as building:
            count, skipped, problems = _write_all(corpus, building, skip_problems, progress, seen)
            if not count:
                raise InvalidInputError("holds no passage", where=", ".join(map(str, corpus.files)))
            info = IndexInfo(
                passages=count,
                skipped=skipped,
                sources=tuple(map(str, corpus.files)),
                analyzer=ANALYZER,
                seconds=round(time.perf_counter() - started, 2),
                made_by=f"tantivy {version('tantivy')}",
            )
            (building / INFO_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(info)))
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(out)) from error
    except ValueError as error:
        if not any(sign in str(error) for sign in FULL_DISK_SIGNS):
            raise
        raise RunError(f"could not be written ({error})", where=str(out), remedy="Is the disk full?") from error
    return BuildReport(info, problems)


def _check_replaceable(out: Path, overwrite: bool) -> None:
    """Only an index, or an empty directory, may be replaced by one: nobody means to lose a folder of something else."""
    if not out.exists():
        return
    if not overwrite:
        raise UsageError("exists already", where=str(out), remedy="Give --overwrite, or another directory.")
    if not out.is_dir() or (any(out.iterdir()) and not (out / INFO_FILE).is_file()):
        raise UsageError("is no index, so it is not replaced by one", where=str(out), remedy="Give another directory.")


def _write_all(
    corpus: Corpus,
    directory: Path,
    skip_problems: bool,
    progress: Callable[[], None],
    seen: Callable[[Passage], None],
) -> tuple[int, int, list[Problem]]:
    index = tantivy.Index(_make_schema(), path=str(directory))
    _register_analyzer(index)
    problems: list[Problem] = []
    skipped = 0
    with _IdFile(directory) as ids, SeenIds(directory / SEEN_FILE) as before, _writer(index) as writer:
        for block in _blocks(corpus):
            for path, line, found in _check_block(block, before):
                if isinstance(found, Passage):
                    writer.add_document(_to_document(found, ids.count))
                    ids.append(found.id)
                    seen(found)
                elif not skip_problems:
                    remedy = "Mend the file, or give --on-error skip to leave such passages out and have them listed."
                    raise InvalidInputError(found, where=f"{path}:{line}", remedy=remedy)
                else:
                    skipped += 1
                    problems.extend([Problem(f"{path}:{line}", found)] if skipped <= MAX_PROBLEMS_KEPT else [])
            progress()
    return ids.count, skipped, problems


def _blocks(corpus: Iterable[Item]) -> Iterator[list[Item]]:
    """The corpus in blocks of a few thousand passages, fewer where they are long."""
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
        yield block  # what is wrong with these comes first
        raise
    yield block


def _check_block(block: Sequence[Item], before: SeenIds) -> Iterator[Item]:
    """The same, with what is wrong in the place of a passage whose id cannot be used or was there before."""
    old = iter(before.add([found.id for _, _, found in block if isinstance(found, Passage)]).tolist())
    for path, line, found in block:
        again = isinstance(found, Passage) and next(old)
        if isinstance(found, Passage) and (wrong := _why_unusable(found.id)):
            yield path, line, wrong
        elif isinstance(found, Passage) and again:
            yield path, line, f"the id {found.id!r} was seen before"
        else:
            yield path, line, found


@contextmanager
def _writer(index: Any) -> Iterator[Any]:
    """A writer on all cores: committed at the end, rolled back on failure, its threads gone either way."""
    threads = logical_cores()
    writer = index.writer(WRITER_BYTES_PER_THREAD * threads, threads)
    try:
        yield writer
        writer.commit()
    except BaseException:
        writer.rollback()
        raise
    finally:
        writer.wait_merging_threads()


def _why_unusable(id: str) -> str | None:
    if len(id) <= LONGEST_ID:
        return None
    return f"an id of {len(id)} characters, at most {LONGEST_ID} are allowed: {id[:40]!r}..."


def _to_document(passage: Passage, number: int) -> tantivy.Document:
    document = tantivy.Document()
    document.add_unsigned("number", number)
    document.add_text("id", passage.id)
    document.add_text("body", searchable_text(passage))
    document.add_bytes("passage", msgspec.json.encode(passage))
    return document


class _IdFile:
    """Ids in the order of their numbers, written as a stream and read by memory map."""

    def __init__(self, directory: Path) -> None:
        self.count, self._position = 0, 0
        self._offsets = array.array("Q", [0])
        self._text = (directory / "ids.txt").open("wb")
        self._offset_file = (directory / "ids.offsets").open("wb")

    def __enter__(self) -> "_IdFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._text.close()
        self._offset_file.close()

    def append(self, id: str) -> None:
        data = id.encode("utf-8", "replace")
        self._text.write(data)
        self._position += len(data)
        self._offsets.append(self._position)
        self.count += 1
        if len(self._offsets) >= 1 << 16:
            self._flush()

    def _flush(self) -> None:
        self._offsets.tofile(self._offset_file)
        self._offsets = array.array("Q")
