"""Building a passage index from a corpus in one pass and in bounded memory."""

import array
import hashlib
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
from indexes.storage.atomic_files import replace_directory, resolve_replaced
from indexes.storage.duplicate_ids import SeenIds
from indexes.storage.manifest import write_manifest
from indexes.text.analysis import ENGLISH, describe_analyzer, extract_stems
from schemas.errors import InvalidInputError, RunError, UsageError
from schemas.records import IndexInfo, Passage, Problem

SEEN_IDS_FILE = "ids.seen"  # there only while the index is built
MAX_PROBLEMS_KEPT = 1000
BLOCK_PASSAGES, BLOCK_CHARACTERS = 4096, 8_000_000  # that are in memory at once, at most
MAX_ID_CHARACTERS = 1000  # Tantivy silently leaves out a term of more than 64 KB
WRITER_BYTES_PER_THREAD = 64_000_000
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
    _check_replaceable(resolve_replaced(out), overwrite)
    started = time.perf_counter()
    try:
        with replace_directory(out) as building:
            written = _write_passages(corpus, building, skip_problems, progress, on_passage)
            if not written.count:
                raise InvalidInputError("holds no passage", where=", ".join(map(str, corpus.files)))
            info = IndexInfo(
                passages=written.count,
                skipped=written.skipped,
                sources=tuple(map(str, corpus.files)),
                analyzer=describe_analyzer(corpus.languages),
                segmentation=str(corpus.segmentation or ""),
                seconds=round(time.perf_counter() - started, 2),
                made_by=f"tantivy {version('tantivy')}",
                format=FORMAT,
                contents=written.contents,
            )
            (building / INFO_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(info)))
            write_manifest(building)
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(out)) from error
    except ValueError as error:
        if not any(sign in str(error) for sign in FULL_DISK_SIGNS):
            raise
        raise RunError(f"could not be written ({error})", where=str(out), remedy="Is the disk full?") from error
    return BuildReport(info, written.problems)


def _check_replaceable(out: Path, overwrite: bool) -> None:
    """Raise `UsageError` unless `out` is missing, or is an index or an empty directory that may be overwritten."""
    if not out.exists():
        return
    if not overwrite:
        raise UsageError("exists already", where=str(out), remedy="Give --overwrite, or another directory.")
    if not out.is_dir() or (any(out.iterdir()) and not (out / INFO_FILE).is_file()):
        raise UsageError("is no index, so it is not replaced by one", where=str(out), remedy="Give another directory.")


@dataclass(slots=True)
class _Written:
    """What was written of a corpus."""

    count: int = 0
    skipped: int = 0
    problems: list[Problem] = field(default_factory=list)  # the first
    contents: str = ""  # `IndexInfo.contents`


def _write_passages(
    corpus: Corpus,
    directory: Path,
    skip_problems: bool,
    progress: Callable[[], None],
    on_passage: Callable[[Passage], None],
) -> _Written:
    index = tantivy.Index(build_schema(), path=str(directory))
    register_analyzer(index, corpus.languages)
    stemmed = not is_english(corpus.languages)
    written, hashed = _Written(), hashlib.blake2b(digest_size=16)
    dates: dict[int, str] = {}  # only documents have them
    with _IdWriter(directory) as ids, SeenIds(directory / SEEN_IDS_FILE) as seen_ids, _open_writer(index) as writer:
        for block in _split_into_blocks(corpus):
            for path, line, found in _check_block(block, seen_ids):
                if isinstance(found, Passage):
                    encoded = _encode_passage(found)
                    hashed.update(encoded + b"\n")
                    writer.add_document(_to_document(found, encoded, ids.count, stemmed=stemmed))
                    dates |= {ids.count: found.date} if found.date else {}
                    ids.write_id(found.id)
                    on_passage(found)
                elif not skip_problems:
                    remedy = "Mend the file, or give --on-error skip to leave such passages out and have them listed."
                    raise InvalidInputError(found, where=f"{path}:{line}", remedy=remedy)
                else:
                    written.skipped += 1
                    if written.skipped <= MAX_PROBLEMS_KEPT:
                        written.problems.append(Problem(f"{path}:{line}", found))
            progress()
    if dates:
        (directory / DATES_FILE).write_bytes(msgspec.json.encode(dates))
    written.count, written.contents = ids.count, hashed.hexdigest()
    return written


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


@contextmanager
def _open_writer(index: Any) -> Iterator[Any]:
    """A writer on all cores, committed at the end or rolled back on failure; its threads end either way."""
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


def _explain_bad_id(id: str, is_duplicate: bool) -> str:
    if len(id) > MAX_ID_CHARACTERS:
        return f"an id of {len(id)} characters, at most {MAX_ID_CHARACTERS} are allowed: {id[:40]!r}..."
    return f"the id {id!r} was seen before" if is_duplicate else ""


def _to_document(passage: Passage, encoded: bytes, number: int, *, stemmed: bool) -> tantivy.Document:
    """What Tantivy is given of a passage: its text, or where languages differ its stems."""
    text = build_searchable_text(passage)
    document = tantivy.Document()
    document.add_unsigned("number", number)
    document.add_text("id", passage.id)
    document.add_text("body", " ".join(extract_stems(text, passage.language)) if stemmed else text)
    document.add_bytes("passage", encoded)
    return document


def _encode_passage(passage: Passage) -> bytes:
    """As JSON. English and no date are left out, so that an index of passages is as it always was."""
    fields = msgspec.to_builtins(passage)
    if passage.language == ENGLISH:
        del fields["language"]
    if not passage.date:
        del fields["date"]
    return msgspec.json.encode(fields)


class _IdWriter:
    """Writes the ids in the order of their numbers, with the offsets that they are read by."""

    def __init__(self, directory: Path) -> None:
        self.count, self._position = 0, 0
        self._offsets = array.array("Q", [0])
        self._text = (directory / "ids.txt").open("wb")
        self._offset_file = (directory / "ids.offsets").open("wb")

    def __enter__(self) -> "_IdWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._text.close()
        self._offset_file.close()

    def write_id(self, id: str) -> None:
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
