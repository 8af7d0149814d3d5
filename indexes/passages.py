"""The passage index: built from a corpus in one go, then searched and read by exact id.

An index is a directory: Tantivy's own files, `ids.txt` and `ids.offsets` (every id, by the number that the postings
carry: a thousand hits are named without fetching a thousand texts), and `convagent-index.json`.
"""

import array
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tantivy

from indexes.corpus import Corpus, Item
from indexes.seen import SeenIds
from indexes.vectors import About, Vectors, read_about, read_vectors
from indexes.whole import in_place, making_directory
from indexes.words import ANALYZER, analyzer, stems
from schemas.errors import InvalidInputError, MissingError, RunError, UsageError
from schemas.records import Hit, IndexInfo, Passage, Problem

INFO_FILE = "convagent-index.json"
SEEN_FILE = "ids.seen"  # while it is built
MAX_PROBLEMS_KEPT = 1000
BLOCK, BLOCK_CHARACTERS = 4096, 8_000_000  # passages that are in memory at once, at most
LONGEST_ID = 1000  # characters: Tantivy leaves a term of more than 64 KB out, without a word
WRITER_BYTES_PER_THREAD = 64_000_000
OF_A_FULL_DISK = "os error", "writer was killed"  # in the ValueError that Tantivy has for everything
DECIMALS = 4  # scores are told in steps of 0.0001, so that ties break the same way everywhere

Weighted = tuple[str, float]  # a text to search with, and what its words weigh
Ranked = list[tuple[int, float]]  # numbers of passages with their scores, best first


def unseen(_passage: Passage) -> None:
    """Nobody looks."""


@dataclass(slots=True)
class Built:
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
    seen: Callable[[Passage], None] = unseen,
) -> Built:
    """Index a corpus into the directory `out`, which appears whole or not at all.

    Bad lines, empty texts and ids seen before stop the build (`InvalidInputError`), or are counted and skipped.
    `progress` is called now and then; `seen` is told each passage that goes in. Memory: a block of the corpus, the
    writer's buffers, what `SeenIds` keeps to know duplicates, and what Tantivy holds of the segments that it merges.
    """
    _check_replaceable(in_place(out), overwrite)
    started = time.perf_counter()
    try:
        with making_directory(out) as building:
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
        if not any(sign in str(error) for sign in OF_A_FULL_DISK):
            raise
        raise RunError(f"could not be written ({error})", where=str(out), remedy="Is the disk full?") from error
    return Built(info, problems)


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
    index = tantivy.Index(_schema(), path=str(directory))
    _register(index)
    problems: list[Problem] = []
    skipped = 0
    with _IdFile(directory) as ids, SeenIds(directory / SEEN_FILE) as before, _writer(index) as writer:
        for block in _blocks(corpus):
            for path, line, found in _judged(block, before):
                if isinstance(found, Passage):
                    writer.add_document(_document(found, ids.count))
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
            if len(block) >= BLOCK or characters >= BLOCK_CHARACTERS:
                yield block
                block, characters = [], 0
    except InvalidInputError:
        yield block  # what is wrong with these comes first
        raise
    yield block


def _judged(block: Sequence[Item], before: SeenIds) -> Iterator[Item]:
    """The same, with what is wrong in the place of a passage whose id cannot be used or was there before."""
    old = iter(before.add([found.id for _, _, found in block if isinstance(found, Passage)]).tolist())
    for path, line, found in block:
        again = isinstance(found, Passage) and next(old)
        if isinstance(found, Passage) and (wrong := _unusable(found.id)):
            yield path, line, wrong
        elif isinstance(found, Passage) and again:
            yield path, line, f"the id {found.id!r} was seen before"
        else:
            yield path, line, found


@contextmanager
def _writer(index: Any) -> Iterator[Any]:
    """A writer on all cores: committed at the end, rolled back on failure, its threads gone either way."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    writer = index.writer(WRITER_BYTES_PER_THREAD * threads, threads)
    try:
        yield writer
        writer.commit()
    except BaseException:
        writer.rollback()
        raise
    finally:
        writer.wait_merging_threads()


def _unusable(id: str) -> str | None:
    if len(id) <= LONGEST_ID:
        return None
    return f"an id of {len(id)} characters, at most {LONGEST_ID} are allowed: {id[:40]!r}..."


def _document(passage: Passage, number: int) -> tantivy.Document:
    document = tantivy.Document()
    document.add_unsigned("number", number)
    document.add_text("id", passage.id)
    document.add_text("body", whole_text(passage))
    document.add_bytes("passage", msgspec.json.encode(passage))
    return document


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("number", fast=True)
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name="convagent", index_option="freq")
    builder.add_bytes_field("passage", stored=True)
    return builder.build()


def _register(index: Any) -> None:
    index.register_tokenizer("convagent", analyzer())


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


class PassageIndex:
    """An index opened for searching. Safe to share between threads; opens no file for writing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory = in_place(directory)
        self.info = read_info(directory)
        try:
            self._index = tantivy.Index.open(str(directory))
            self._offsets = np.memmap(directory / "ids.offsets", dtype=np.uint64, mode="r")
            self._ids = np.memmap(directory / "ids.txt", dtype=np.uint8, mode="r")
            if len(self._offsets) != len(self) + 1 or self._offsets[-1] != len(self._ids):
                raise ValueError("its ids are not whole")
        except (ValueError, OSError) as error:
            if "acquire Lockfile" in str(error):
                what = "cannot be opened: Tantivy needs a directory that can be written, for its locks"
                raise RunError(what, where=str(directory), remedy="Copy it to one.") from error
            remedy = "Build it again with `convagent index build`."
            raise InvalidInputError(f"is a damaged index ({error})", where=str(directory), remedy=remedy) from error
        _register(self._index)
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return self.info.passages

    @cached_property
    def embedded(self) -> About | None:
        """What is known of its vectors; None where it has none. Raises `InvalidInputError` where that is damaged."""
        return read_about(self.directory)

    @cached_property
    def vectors(self) -> Vectors | None:
        """A row a passage, by its number; None where the index has none."""
        return read_vectors(self.directory, self.embedded) if self.embedded else None

    def texts(self) -> Iterator[str]:
        """All that is searched of each passage, by its number."""
        return (whole_text(passage) for number in range(len(self)) for passage in self.read([self.id(number)]))

    def search(self, parts: Iterable[Weighted], k: int) -> tuple[Hit, ...]:
        """The `k` best passages for weighted texts, by BM25 (k1 1.2, b 0.75).

        Scores decrease strictly; ties go by corpus order.
        """
        return self.hits(self.rank(weighted(parts), k))

    def hits(self, ranked: Ranked) -> tuple[Hit, ...]:
        """A ranking by ids."""
        ids = self.ids([number for number, _ in ranked])
        return strictly_decreasing(zip(ids, (score for _, score in ranked), strict=True))

    def rank(self, weights: Mapping[str, float], k: int) -> Ranked:
        """The same for weighted stems, as numbers of passages with their scores, which may be equal."""
        if not weights:
            return []
        schema = self._index.schema
        clauses = [
            (
                tantivy.Occur.Should,
                tantivy.Query.boost_query(tantivy.Query.term_query(schema, "body", term), weight),
            )
            for term, weight in weights.items()
        ]
        found = self._searcher.search(tantivy.Query.boolean_query(clauses), k + 100, count=False).hits
        numbers = np.array(
            self._searcher.fast_field_values("number", [address for _, address in found]), dtype=np.int64
        )
        steps = np.rint(np.array([score for score, _ in found]) * 10**DECIMALS)  # exact: 32-bit scores
        order = np.lexsort((numbers, -steps))[:k]
        return list(zip(numbers[order].tolist(), (steps[order] / 10**DECIMALS).tolist(), strict=True))

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        """Passages by exact id, in the order asked. Raises `MissingError` naming every id that is not there."""
        found = {id: self.find(id) for id in ids}
        missing = [id for id, passage in found.items() if passage is None]
        if missing:
            raise MissingError(f"holds no passage {', '.join(missing[:20])}", where=str(self.directory))
        return tuple(passage for id in ids if (passage := found[id]))

    def __contains__(self, id: str) -> bool:
        return self.find(id) is not None

    def find(self, id: str) -> Passage | None:
        """A passage by exact id, or None."""
        query = tantivy.Query.term_query(self._index.schema, "id", id, "basic")
        hits = self._searcher.search(query, 1, count=False).hits
        if not hits:
            return None
        stored = self._searcher.doc(hits[0][1])["passage"][0]
        return msgspec.json.decode(stored, type=Passage)

    def id(self, number: int) -> str:
        """The id of a passage by its number."""
        return self.ids([number])[0]

    def ids(self, numbers: Sequence[int]) -> list[str]:
        """The ids of passages by their numbers."""
        places = np.asarray(numbers, dtype=np.int64)
        starts, ends = self._offsets[places].tolist(), self._offsets[places + 1].tolist()
        text = self._ids.data
        return [str(text[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]


def weighted(parts: Iterable[Weighted]) -> dict[str, float]:
    """What each stem of some texts weighs: a stem that is there twice counts twice."""
    weights: dict[str, float] = {}
    for text, weight in parts:
        for stem in stems(text):
            weights[stem] = weights.get(stem, 0.0) + weight
    return weights


def whole_text(passage: Passage) -> str:
    """All that is searched of a passage."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def read_info(directory: Path) -> IndexInfo:
    """What an index says about itself. Raises `MissingError` where there is none."""
    remedy = "Build one with `convagent index build PASSAGES... -o DIR`."
    directory = in_place(directory)
    if not directory.exists():
        raise MissingError("no such index directory", where=str(directory), remedy=remedy)
    try:
        return msgspec.json.decode((directory / INFO_FILE).read_bytes(), type=IndexInfo)
    except OSError as error:
        raise MissingError(f"is no index (it has no {INFO_FILE})", where=str(directory), remedy=remedy) from error
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is a damaged index ({error})", where=str(directory), remedy=remedy) from error


def strictly_decreasing(ranked: Iterable[tuple[str, float]]) -> tuple[Hit, ...]:
    """Hits of a ranking whose scores decrease by at least 0.0001.

    TREC tools sort by *score*, and the organisers' scripts keep six decimals of a 32-bit float, so equal scores would
    be reordered. A score that does not fall below the one before is lowered by one step.
    """
    hits: list[Hit] = []
    step, ceiling = 10**-DECIMALS, math.inf
    for id, score in ranked:
        lowered = round(min(score, ceiling), DECIMALS)
        hits.append(Hit(id, lowered))
        ceiling = lowered - step
    return tuple(hits)
