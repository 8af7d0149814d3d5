"""Indexes of passages: searching one, and reading passages by exact id. `index_builder.py` builds it.

`Index` is what all have in common; `sharded_index.py` opens any. A passage index is a directory: Tantivy's own files,
`ids.txt` and `ids.offsets` (the ids by the numbers that the postings have, so that a thousand hits are named without
fetching a thousand texts), `convagent-index.json`, and the checksums of all these (`indexes/storage/files.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tantivy

from indexes.ranking.compressed_vectors import CompressedVectors, open_compressed_vectors
from indexes.ranking.rankings import DECIMALS, Numbers, RankedNumbers, Rows, separate_scores
from indexes.ranking.vectors import VectorInfo, Vectors, read_vector_info, read_vectors
from indexes.storage.atomic_files import resolve_replaced
from indexes.storage.files import find_damage
from indexes.text.analysis import ENGLISH, build_analyzer, build_splitter, describe_analyzer, list_languages
from indexes.text.languages import WeightedText, weight_stems
from schemas.errors import InvalidInputError, MissingError, RunError, list_with_limit
from schemas.records import Hit, IndexInfo, Passage
from schemas.wire import decode

INFO_FILE = "convagent-index.json"
FORMAT = 1  # of the files of an index
REBUILD = "Build it again with `convagent index build`."
MAX_LISTED = 3  # damaged files in an error
DATES_FILE = "dates.json"  # of passages that have one, by their numbers; only of documents

LEAST_SPARE, SPARE_SHARE = 10, 10  # hits beyond `k`, and one for so many of it, so that few ties go on past the last
DEEPER = 4  # times as many, where they do
NUMBER_BITS = 32  # of a passage's number: Tantivy's own have as many


def build_schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("number", fast=True)
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name="convagent", index_option="freq")
    builder.add_bytes_field("passage", stored=True)
    return builder.build()


def register_analyzer(index: Any, languages: Sequence[str]) -> None:
    """Tell an index how texts are analysed, which its files do not say: those in several languages are stems."""
    index.register_tokenizer("convagent", build_analyzer() if is_english(languages) else build_splitter())


def is_english(languages: Sequence[str]) -> bool:
    return set(languages) <= {ENGLISH}


class Index(ABC):
    """Passages that are searched, in one index or in shards. Safe to share between threads.

    What is said of vectors raises `InvalidInputError` where these are damaged, or are those of another index.
    """

    directory: Path
    info: IndexInfo
    languages: tuple[str, ...]
    dates: Mapping[int, str]  # of the passages that have one, by their numbers
    part_directories: Sequence[Path]  # of the passage indexes that it is made of

    @cached_property
    def vector_infos(self) -> Sequence[VectorInfo]:
        """What the vectors of each part, of one model, are made with; none where a part has none."""
        found = [read_vector_info(part, read_info(part)) for part in self.part_directories]
        infos = [info for info in found if info]
        if len({info.digest for info in infos}) > 1:
            remedy = "Make them again with `convagent index embed`."
            raise InvalidInputError("has vectors of several models", where=str(self.directory), remedy=remedy)
        return infos if len(infos) == len(found) else ()

    @cached_property
    def vectors(self) -> Vectors | None:
        """One row for each passage, by its number; None if the index has no vectors."""
        return read_vectors(self.part_directories, self.vector_infos) if self.vector_infos else None

    @cached_property
    def compressed_vectors(self) -> CompressedVectors | None:
        """What finds the nearest; None if they are not compressed. Raises `MissingError` without faiss."""
        infos = self.vector_infos
        is_compressed = infos and all(info.compressed for info in infos)
        return open_compressed_vectors(self.part_directories, infos) if is_compressed else None

    @abstractmethod
    def rank(self, weights: Mapping[str, float], k: int, rows: Rows | None = None) -> RankedNumbers:
        """The `k` best passages for weighted stems, by BM25; of those in `rows` only. Their scores may be equal."""

    @abstractmethod
    def find_all(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages that are there of some exact ids."""

    @abstractmethod
    def get_ids(self, numbers: Sequence[int]) -> list[str]:
        """The ids of passages by their numbers."""

    def close(self) -> None:  # noqa: B027 - most start nothing
        """End what was started to search it."""

    def __len__(self) -> int:
        return self.info.passages

    def search(self, parts: Iterable[WeightedText], k: int) -> tuple[Hit, ...]:
        """The `k` best passages for weighted texts, by BM25 (k1 1.2, b 0.75).

        Scores decrease strictly; ties go by corpus order.
        """
        return self.to_hits(self.rank(self.weigh(parts), k))

    def weigh(self, parts: Iterable[WeightedText]) -> dict[str, float]:
        """The weight of each stem of some texts, as the documents' languages have them."""
        return weight_stems(parts, self.languages)

    def to_hits(self, ranked: RankedNumbers) -> tuple[Hit, ...]:
        return separate_scores(self.get_ids([number for number, _ in ranked]), [score for _, score in ranked])

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        """Passages by exact id, in the order of `ids`. Raises `MissingError` with the ids that are not there."""
        found = self.find_all(ids)
        missing = [id for id in ids if id not in found]
        if missing:
            raise MissingError(f"holds no passage {', '.join(missing[:20])}", where=str(self.directory))
        return tuple(found[id] for id in ids)

    def find(self, id: str) -> Passage | None:
        return self.find_all([id]).get(id)

    def __contains__(self, id: str) -> bool:
        return self.find(id) is not None

    def read_texts(self, numbers: Sequence[int]) -> list[str]:
        """The searchable texts of passages by their numbers."""
        return [build_searchable_text(passage) for passage in self.read(self.get_ids(numbers))]


class PassageIndex(Index):
    """One index in one directory. No file is opened for writing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory = resolve_replaced(directory)
        self.part_directories = [directory]
        self.info = read_info(directory)
        self.languages = list_languages(self.info.analyzer)
        check_whole(directory)
        with _explain_damage(self.directory):
            self._index = _open_tantivy(directory)
            self._offsets = np.asarray(np.memmap(directory / "ids.offsets", dtype=np.uint64, mode="r"))
            with (directory / "ids.txt").open("rb") as ids:
                self._ids = mmap(ids.fileno(), 0, access=ACCESS_READ)
            if len(self._offsets) != len(self) + 1 or self._offsets[-1] != len(self._ids):
                raise ValueError("its ids are not whole")
            if self._index.schema != build_schema():
                raise ValueError("its fields are not those of this version")
            register_analyzer(self._index, self.languages)
            self._searcher = self._index.searcher()
            if self._searcher.num_docs != len(self):
                raise ValueError("its passages are not all there")
            dates = directory / DATES_FILE
            self.dates = decode(dates.read_bytes(), dict[int, str]) if dates.exists() else {}

    def rank(self, weights: Mapping[str, float], k: int, rows: Rows | None = None) -> RankedNumbers:
        with _explain_damage(self.directory):
            found, steps = self._find_best(weights, k if rows is None else len(self))
            numbers = np.array(self._searcher.fast_field_values("number", found), dtype=np.int64)
            if len(numbers) and numbers.max() >= len(self):
                raise ValueError("it numbers passages that it does not hold")
        keys = numbers - (steps << NUMBER_BITS)  # by score, then by number: sorted faster than by two keys
        keys = np.sort(keys if rows is None else keys[rows[numbers]])[:k]
        numbers, steps = keys & ((1 << NUMBER_BITS) - 1), -(keys >> NUMBER_BITS)
        return list(zip(numbers.tolist(), (steps / 10**DECIMALS).tolist(), strict=True))

    def count_passages_with(self, terms: Sequence[str]) -> list[int]:
        with _explain_damage(self.directory):
            return [self._searcher.doc_freq("body", term) for term in terms]

    def _find_best(self, weights: Mapping[str, float], k: int) -> tuple[Sequence[Any], Numbers]:
        """Where the `k` best passages are, and those whose rounded score is that of the last.

        Their scores are in steps of rounding.
        """
        body = partial(tantivy.Query.term_query, self._index.schema, "body")
        terms = [(tantivy.Occur.Should, tantivy.Query.boost_query(body(term), weights[term])) for term in weights]
        query, depth = tantivy.Query.boolean_query(terms), k + max(LEAST_SPARE, k // SPARE_SHARE)
        while True:
            depth = min(depth, len(self) + 1)
            hits = self._searcher.search(query, depth, count=False).hits
            steps = np.rint(np.array([score for score, _ in hits]) * 10**DECIMALS).astype(np.int64)
            if len(hits) < depth or steps[-1] < steps[k - 1]:
                best = np.count_nonzero(steps >= steps[k - 1]) if len(hits) > k else len(hits)
                return [address for _, address in hits[:best]], steps[:best]
            depth *= DEEPER

    def find_all(self, ids: Sequence[str]) -> dict[str, Passage]:
        found = {}
        with _explain_damage(self.directory):
            for id in ids:
                query = tantivy.Query.term_query(self._index.schema, "id", id, "basic")
                for _, address in self._searcher.search(query, 1, count=False).hits:
                    found[id] = msgspec.json.decode(self._searcher.doc(address)["passage"][0], type=Passage)
        return found

    def get_ids(self, numbers: Sequence[int]) -> list[str]:
        with _explain_damage(self.directory):
            places = np.asarray(numbers, dtype=np.int64)
            starts, ends = self._offsets[places].tolist(), self._offsets[places + 1].tolist()
            return [self._ids[start:end].decode() for start, end in zip(starts, ends, strict=True)]


def build_searchable_text(passage: Passage) -> str:
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def read_info(directory: Path) -> IndexInfo:
    """The info of an index.

    Raises `MissingError` where there is no index, `InvalidInputError` for a damaged one and for one whose files or
    stems are made in another way than this version does.
    """
    remedy = "Build one with `convagent index build PASSAGES... -o DIR`."
    directory = resolve_replaced(directory)
    if not directory.exists():
        raise MissingError("no such index directory", where=str(directory), remedy=remedy)
    try:
        info = decode((directory / INFO_FILE).read_bytes(), IndexInfo)
    except OSError as error:
        raise MissingError(f"is no index (it has no {INFO_FILE})", where=str(directory), remedy=remedy) from error
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is a damaged index ({error})", where=str(directory), remedy=remedy) from error
    if (info.format, info.analyzer) != (FORMAT, describe_analyzer(list_languages(info.analyzer))):
        what = f"is an index of another version (format {info.format}; {info.analyzer})"
        raise InvalidInputError(what, where=str(directory), remedy=REBUILD)
    return info


def check_whole(directory: Path, *, thorough: bool = False) -> None:
    """Raise `InvalidInputError` where an index's files are not those that were built.

    Sizes are compared, and contents where it is to be thorough or the files are small.
    """
    if damage := list(find_damage(directory, thorough=thorough)):
        raise _make_damage_error(directory, "; ".join(list_with_limit(damage, MAX_LISTED, "and {} more")))


@contextmanager
def _explain_damage(directory: Path) -> Iterator[None]:
    """What reading damaged files raises, as one error. Tantivy is written in Rust, whose panics are no `Exception`."""
    try:
        yield
    except (ValueError, LookupError, OverflowError, OSError, TypeError, msgspec.DecodeError) as error:
        raise _make_damage_error(directory, str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise _make_damage_error(directory, f"Tantivy cannot read it: {error}") from error


def _make_damage_error(directory: Path, what: str) -> InvalidInputError:
    return InvalidInputError(f"is a damaged index ({what})", where=str(directory), remedy=REBUILD)


def _open_tantivy(directory: Path) -> Any:
    """Tantivy's own index. Raises `RunError` where its locks cannot be made, else what Tantivy raises."""
    try:
        return tantivy.Index.open(str(directory))
    except (ValueError, OSError) as error:
        if "acquire Lockfile" not in str(error):
            raise
        what = "cannot be opened: Tantivy needs a directory that can be written, for its locks"
        raise RunError(what, where=str(directory), remedy="Copy it to one.") from error
