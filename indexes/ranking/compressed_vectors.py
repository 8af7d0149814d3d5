"""Compressed vectors: search by meaning over all passages of an index whose vectors do not fit in memory.

`vectors.faiss` holds a bit for each number of a vector, in lists by the centre that is nearest to the vector. A
search goes through the codes of the lists nearest to the question, and scores what seems best again with the 16-bit
vectors, which stay in their file. Sums on one thread alone make the same bytes everywhere. faiss (extra `faiss`) is
imported here and nowhere else, when it is used.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from indexes.ranking.rankings import Numbers
from indexes.ranking.vectors import (
    VECTOR_INFO_FILE,
    VECTORS_FILE,
    CompressedInfo,
    StoredVectors,
    VectorInfo,
    Vectors,
    read_checked_rows,
    seal_info,
)
from indexes.storage.atomic_files import write_file_atomically
from indexes.storage.files import compare_file, explain_failed_writing, record_file, write_json_atomically
from schemas.errors import InvalidInputError, MissingError, RunError, UsageError

COMPRESSED_FILE = "vectors.faiss"
CODES = "RaBitQ"  # what faiss calls them: a bit for each number (docs/adr/0005-words-and-meaning.md)
MIN_PASSAGES = 256  # below, there is nothing to gain
LIST_SHARE = 16  # one in so many lists is searched
MIN_LISTS_SEARCHED = 64
LEARNED_ROWS = 40  # vectors that each centre is learned from
ITERATIONS = 8  # of learning
CANDIDATES, CANDIDATES_PER_HIT = 1000, 2  # scored again: so many at least, and for each that is wanted
SEED = 1
log = logging.getLogger("convagent")


def write_compressed_vectors(directory: Path, info: VectorInfo, progress: Callable[[int], None]) -> int:
    """Compress an index's vectors: to how many bytes. The file is written whole or not at all.

    Memory: the codes, the vectors that they are learned from, and a block of rows. `progress` is called with the number
    of vectors that are done. Raises `UsageError` for too few, `MissingError` without faiss, `InvalidInputError` for
    damaged vectors, `RunError` where the file cannot be written.
    """
    if info.passages < MIN_PASSAGES:
        what = f"has {info.passages} passages: vectors are compressed from {MIN_PASSAGES} on, and needed for millions"
        raise UsageError(what, where=str(directory), remedy="Leave --compress out.")
    faiss = _import_faiss(directory)
    recipe = f"IVF{count_lists(info.passages)},{CODES}"
    index = _learn(faiss, recipe, directory, info)
    for first, rows in read_checked_rows(directory, info):
        index.add(rows.astype(np.float32))
        progress(first + len(rows))
    path = directory / COMPRESSED_FILE
    try:
        with explain_failed_writing(directory):
            write_file_atomically(path, lambda temporary: faiss.write_index(index, str(temporary)))
            compressed = CompressedInfo(recipe, record_file(path))
            write_json_atomically(directory / VECTOR_INFO_FILE, seal_info(replace(info, compressed=compressed)))
        return compressed.file.bytes
    except RuntimeError as error:  # faiss's
        raise RunError(f"could not be written ({error})", where=str(directory), remedy="Is the disk full?") from error


def check_compressed_vectors(directory: Path, compressed: CompressedInfo) -> None:
    """Compare the file with its checksum. Raises `InvalidInputError`."""
    if damage := compare_file(directory / COMPRESSED_FILE, compressed.file):
        raise _make_damage_error(directory, f"{COMPRESSED_FILE} {damage}")


@dataclass(frozen=True, slots=True)
class CompressedVectors:
    """The codes and vectors of an index, or of shards, which hold its passages in turn. For any number of threads."""

    parts: Sequence["_Part"]

    def find_candidates(self, query: Vectors, count: int) -> Numbers:
        """More passages than so many, among which those nearest to a vector of length 1 should be."""
        every, most = len(self.parts), max(CANDIDATES, CANDIDATES_PER_HIT * count)
        found = [part.find_candidates(query, most) * every + first for first, part in enumerate(self.parts)]
        return np.concatenate(found)

    def score(self, numbers: Numbers, query: Vectors) -> Vectors:
        """The cosines of passages with a vector, by their own 16-bit vectors. Raises `InvalidInputError`."""
        places, owners = np.divmod(numbers, len(self.parts))
        cosines = np.empty(len(numbers), dtype=np.float32)
        for first, part in enumerate(self.parts):
            own = owners == first
            cosines[own] = part.vectors[places[own]].astype(np.float32) @ query
            if not np.isfinite(cosines[own]).all():
                raise _make_damage_error(part.directory, "vectors hold what is no number")
        return cosines


@dataclass(frozen=True, slots=True)
class _Part:
    directory: Path
    codes: Any  # faiss's index
    vectors: StoredVectors  # a row a passage, by its number, in a file

    def find_candidates(self, query: Vectors, count: int) -> Numbers:
        """The passages that seem nearest, in the order of the file."""
        import faiss

        searched = max(MIN_LISTS_SEARCHED, self.codes.nlist // LIST_SHARE)
        parameters = faiss.IVFRaBitQSearchParameters(nprobe=searched)
        question = np.ascontiguousarray(query[None], dtype=np.float32)
        found = self.codes.search(question, min(count, len(self.vectors)), params=parameters)[1][0]
        return np.sort(found[found >= 0])


def open_compressed_vectors(directories: Sequence[Path], infos: Sequence[VectorInfo]) -> CompressedVectors:
    """The codes of an index, read into memory, over the vectors in their files.

    Raises `InvalidInputError` where the codes are not what was written, or vectors are missing; `MissingError` without
    faiss.
    """
    return CompressedVectors(list(map(_open_part, directories, infos)))


def _open_part(directory: Path, info: VectorInfo) -> _Part:
    faiss = _import_faiss(directory)
    assert info.compressed
    check_compressed_vectors(directory, info.compressed)  # faiss may crash on what it did not write
    try:
        vectors = np.memmap(directory / VECTORS_FILE, dtype=np.float16, mode="r").reshape(info.passages, info.size)
    except (OSError, ValueError) as error:
        raise _make_damage_error(directory, str(error)) from error
    return _Part(directory, faiss.read_index(str(directory / COMPRESSED_FILE)), vectors)


def _learn(faiss: Any, recipe: str, directory: Path, info: VectorInfo) -> Any:
    """The lists and the codes, learned from a sample and as yet empty."""
    faiss.omp_set_num_threads(1)  # sums on several threads differ in their last bits
    index = faiss.index_factory(info.size, recipe, faiss.METRIC_INNER_PRODUCT)
    index.cp.niter = ITERATIONS
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, LEARNED_ROWS  # it warns below the first
    count = min(LEARNED_ROWS * index.nlist, info.passages)
    drawn = np.random.default_rng(SEED).choice(info.passages, count, replace=False)
    rows = np.memmap(directory / VECTORS_FILE, dtype=np.float16, mode="r").reshape(-1, info.size)
    index.train(rows[np.sort(drawn)].astype(np.float32))
    return index


def count_lists(passages: int) -> int:
    """A power of two near the root of the number of passages."""
    return int(2 ** round(math.log2(passages) / 2))


def _import_faiss(directory: Path) -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        remedy = "pip install 'convagent[faiss]'"
        raise MissingError("compressed vectors need faiss", where=str(directory), remedy=remedy) from error
    return faiss


def _make_damage_error(directory: Path, what: str) -> InvalidInputError:
    remedy = "Make them again with `convagent index embed --compress`."
    return InvalidInputError(f"has damaged compressed vectors ({what})", where=str(directory), remedy=remedy)
