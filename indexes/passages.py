"""The passage index: built from a corpus in one go, then searched and read by exact id.

An index is a directory: Tantivy's own files, `ids.txt` and `ids.offsets` (every id, by the number that the postings
carry: a thousand hits are named without fetching a thousand texts), and `convagent-index.json`.
"""

import array
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import tantivy

from indexes.corpus import Corpus
from indexes.vectors import Vectors, read_about, read_vectors
from indexes.words import ANALYZER, analyzer, stems
from schemas.errors import InvalidInputError, MissingError, RunError, UsageError
from schemas.records import Hit, IndexInfo, Passage, Problem

INFO_FILE = "convagent-index.json"
MAX_PROBLEMS_KEPT = 1000
LONGEST_ID = 1000  # characters: Tantivy leaves a term of more than 64 KB out, without a word
WRITER_BYTES_PER_THREAD = 64_000_000
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
    `progress` is called now and then; `seen` is told each passage that goes in. Memory: 8 bytes an id to know
    duplicates, and the writer's fixed buffers.
    """
    if out.exists() and not overwrite:
        raise UsageError("exists already", where=str(out), remedy="Give --overwrite, or another directory.")
    started = time.perf_counter()
    building = out.with_name(f".{out.name}.building-{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    try:
        building.mkdir(parents=True)
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
        _move_into_place(building, out)
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(out)) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return Built(info, problems)


def _write_all(
    corpus: Corpus,
    directory: Path,
    skip_problems: bool,
    progress: Callable[[], None],
    seen: Callable[[Passage], None],
) -> tuple[int, int, list[Problem]]:
    index = tantivy.Index(_schema(), path=str(directory))
    _register(index)
    digests: set[int] = set()
    problems: list[Problem] = []
    skipped = 0
    with _IdFile(directory) as ids, _writer(index) as writer:
        for path, line, found in corpus:
            wrong = found if isinstance(found, str) else _unusable(found.id) or _duplicate(found, digests)
            if wrong is None and isinstance(found, Passage):
                writer.add_document(_document(found, ids.count))
                ids.append(found.id)
                seen(found)
            elif wrong is not None and not skip_problems:
                remedy = "Mend the file, or give --on-error skip to leave such passages out and have them listed."
                raise InvalidInputError(wrong, where=f"{path}:{line}", remedy=remedy)
            elif wrong is not None:
                skipped += 1
                problems.extend([Problem(f"{path}:{line}", wrong)] if skipped <= MAX_PROBLEMS_KEPT else [])
            if ids.count % 256 == 0:
                progress()
    return ids.count, skipped, problems


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


def _duplicate(passage: Passage, seen: set[int]) -> str | None:
    digest = int.from_bytes(hashlib.blake2b(passage.id.encode("utf-8", "replace"), digest_size=8).digest())
    if digest in seen:
        return f"the id {passage.id!r} was seen before"
    seen.add(digest)
    return None


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


def _move_into_place(building: Path, out: Path) -> None:
    if out.exists():
        old = out.with_name(f".{out.name}.old-{os.getpid()}")
        out.rename(old)
        building.rename(out)
        shutil.rmtree(old)
    else:
        building.rename(out)


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
        self.directory = directory
        self.info = read_info(directory)
        try:
            self._index = tantivy.Index.open(str(directory))
            self._offsets = np.memmap(directory / "ids.offsets", dtype=np.uint64, mode="r")
            self._ids = np.memmap(directory / "ids.txt", dtype=np.uint8, mode="r")
            if len(self._offsets) != len(self) + 1 or self._offsets[-1] != len(self._ids):
                raise ValueError("its ids are not whole")
        except (ValueError, OSError) as error:
            remedy = "Build it again with `convagent index build`."
            raise InvalidInputError(f"is a damaged index ({error})", where=str(directory), remedy=remedy) from error
        self.embedded = read_about(directory)
        _register(self._index)
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return self.info.passages

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
        return strictly_decreasing([(self.id(number), score) for number, score in self.rank(weighted(parts), k)])

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
        numbers = self._searcher.fast_field_values("number", [address for _, address in found])
        scored = zip(found, numbers, strict=True)
        ranked = sorted((-round(score, DECIMALS), cast("int", number)) for (score, _), number in scored)
        return [(number, -score) for score, number in ranked[:k]]

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
        start, end = int(self._offsets[number]), int(self._offsets[number + 1])
        return self._ids[start:end].tobytes().decode("utf-8")


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
    step = 10**-DECIMALS
    for id, score in ranked:
        lowered = round(min(score, hits[-1].score - step), DECIMALS) if hits else round(score, DECIMALS)
        hits.append(Hit(id, lowered))
    return tuple(hits)
