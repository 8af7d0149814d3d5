"""What compressed vectors cost and find: faiss and usearch at a million made-up vectors with real statistics.

    python -m benchmarks.compressed_vectors ../shared/data FOLDER [--count 1000000] [--only NAME,NAME] [--likeness]

FOLDER keeps the vectors between runs (`made_up_vectors.py` says how they are made). Each system gives its nearest
passages for a question; these are scored again with the 16-bit vectors, mapped from their file. recall@k: the share of
the k best of exact search that are among the k best then. Bytes are those of the written index, a passage. Milliseconds
are of the processor, so that other work on the machine changes them little, one question at a time on one thread, the
files being in the system's cache. Minutes to build are of the clock, with `OMP_NUM_THREADS` threads.

The faiss systems share one partition of the space into lists, and its minutes count for each.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.made_up_vectors import (
    describe_likeness,
    embed_real_texts,
    fit_mixture,
    write_made_up_vectors,
)
from indexes.ranking.compressed_vectors import count_lists
from indexes.ranking.vectors import StoredVectors, Vectors

SIZE, QUESTIONS = 384, 200
DEPTHS = (10, 100)  # of recall
CANDIDATES = (200, 500, 1000)  # scored again
LIST_ROWS, ITERATIONS = 40, 8  # that each list is learned from
TRAINING_ROWS = 40_960
CODE_ROWS = 16_384  # that codes are learned from, and rotations
BLOCK = 16_384  # rows that are read together
SEED = 1
Numbers = npt.NDArray[np.int64]
Find = Callable[[Vectors, int], Numbers]  # a question, and how many of the nearest


class System(Protocol):
    """A compressed index."""

    def build(self, path: Path) -> None:
        """Make it of all vectors in a file."""

    def count_bytes(self) -> int:
        """Of the whole index, as it is written."""

    def open_settings(self) -> Iterator[tuple[str, Find]]:
        """Each setting that is to be measured, with what searches by it."""


def open_rows(path: Path) -> StoredVectors:
    """The vectors of a file."""
    return np.memmap(path, dtype=np.float16, mode="r").reshape(-1, SIZE)


def read_blocks(made: StoredVectors) -> Iterator[tuple[int, Vectors]]:
    """All vectors, some at a time, each time with the number of the first."""
    for first in range(0, len(made), BLOCK):
        yield first, made[first : first + BLOCK].astype(np.float32)


def draw_rows(made: StoredVectors, count: int) -> Vectors:
    """Some vectors, drawn evenly."""
    drawn = np.random.default_rng(SEED).choice(len(made), min(count, len(made)), replace=False)
    return np.asarray(made[np.sort(drawn)].astype(np.float32))


@dataclass(frozen=True, slots=True)
class Partition:
    """The lists that all faiss systems share."""

    centroids: Vectors
    lists: npt.NDArray[np.int64]  # of each passage
    seconds: float


@cache
def make_partition(path: Path) -> Partition:
    """K-means on a sample, and the nearest list of each passage."""
    import faiss

    started = time.perf_counter()
    made = open_rows(path)
    count = count_lists(len(made))
    means = faiss.Kmeans(SIZE, count, niter=ITERATIONS, seed=SEED, spherical=True)
    means.train(draw_rows(made, LIST_ROWS * count))
    flat = faiss.IndexFlatIP(SIZE)
    flat.add(means.centroids)
    lists = np.concatenate([flat.search(rows, 1)[1][:, 0] for _, rows in read_blocks(made)])
    return Partition(means.centroids, lists, time.perf_counter() - started)


class Faiss:
    """Inverted lists of codes; the recipe is faiss's, of the codes and a rotation before them."""

    def __init__(self, rotation: str, codes: str) -> None:
        self._rotation, self._codes = rotation, codes

    def build(self, path: Path) -> None:
        import faiss

        partition, made = make_partition(path), open_rows(path)
        sample = draw_rows(made, CODE_ROWS)
        recipe = ",".join(filter(None, (self._rotation, f"IVF{len(partition.centroids)}", self._codes)))
        self._index = faiss.index_factory(SIZE, recipe, faiss.METRIC_INNER_PRODUCT)
        self._lists = faiss.downcast_index(faiss.extract_index_ivf(self._index))
        self._rotate = self._train_rotation(faiss, sample)
        self._lists.quantizer.add(self._rotate(partition.centroids))
        if hasattr(self._lists, "pq"):
            self._lists.pq.cp.niter, self._lists.pq.cp.min_points_per_centroid = ITERATIONS, 1
        self._lists.train(self._rotate(sample))  # of the codes alone: the lists are there
        self._index.is_trained = True
        for first, rows in read_blocks(made):
            numbers = np.arange(first, first + len(rows))
            lists = np.ascontiguousarray(partition.lists[numbers])
            rotated = np.ascontiguousarray(self._rotate(rows))
            pointers = map(faiss.swig_ptr, (rotated, numbers, lists))
            self._lists.add_core(len(rows), *pointers)

    def _train_rotation(self, faiss: Any, sample: Vectors) -> Callable[[Vectors], Vectors]:
        if not self._rotation:
            return lambda rows: rows
        transform = faiss.downcast_VectorTransform(self._index.chain.at(0))
        if hasattr(transform, "niter"):
            transform.niter, transform.niter_pq_0 = ITERATIONS, ITERATIONS
        transform.train(sample)
        return lambda rows: transform.apply(rows)

    def count_bytes(self) -> int:
        import faiss

        return len(faiss.serialize_index(self._index))

    def open_settings(self) -> Iterator[tuple[str, Find]]:
        for share in (16, 8, 4):
            self._lists.nprobe = self._lists.nlist // share
            yield f"1/{share} of {self._lists.nlist} lists", self._find

    def _find(self, question: Vectors, count: int) -> Numbers:
        found: Numbers = self._lists.search(np.ascontiguousarray(self._rotate(question[None])), count)[1][0]
        return found[found >= 0]


class Usearch:
    """A graph over vectors of fewer bits."""

    def __init__(self, bits: str) -> None:
        self._bits = bits

    def build(self, path: Path) -> None:
        from usearch.index import Index

        made = open_rows(path)
        metric = "hamming" if self._bits == "b1" else "ip"
        self._index = Index(ndim=SIZE, metric=metric, dtype=self._bits, connectivity=16, expansion_add=128)
        self._centre = draw_rows(made, TRAINING_ROWS).mean(axis=0)
        for first, rows in read_blocks(made):
            self._index.add(np.arange(first, first + len(rows)), self._encode(rows), threads=1)

    def _encode(self, rows: Vectors) -> Any:
        return np.packbits(rows > self._centre, axis=-1) if self._bits == "b1" else rows

    def count_bytes(self) -> int:
        return int(self._index.serialized_length)

    def open_settings(self) -> Iterator[tuple[str, Find]]:
        for width in (256, 1024):
            self._index.expansion_search = width
            yield f"width {width}", self._find

    def _find(self, question: Vectors, count: int) -> Numbers:
        return np.asarray(self._index.search(self._encode(question), count, threads=1).keys, dtype=np.int64)


SYSTEMS: dict[str, Callable[[], System]] = {
    "faiss RaBitQ": lambda: Faiss("", "RaBitQ"),
    "usearch b1": lambda: Usearch("b1"),
    "faiss PQ64": lambda: Faiss("", "PQ64"),
    "faiss RaBitQ2": lambda: Faiss("", "RaBitQ2"),
    "usearch i8": lambda: Usearch("i8"),
    "faiss RaBitQ rotated": lambda: Faiss("RR384", "RaBitQ"),
    "faiss PQ48": lambda: Faiss("", "PQ48"),
    "faiss OPQ64": lambda: Faiss("OPQ64_384", "PQ64"),
}


def search_exactly(made: StoredVectors, questions: Vectors, depth: int) -> Numbers:
    """The numbers of the best passages of each question, best first."""
    scores = np.zeros((len(questions), 0), dtype=np.float32)
    numbers = np.zeros((len(questions), 0), dtype=np.int64)
    for first, rows in read_blocks(made):
        scores = np.hstack([scores, questions @ rows.T])
        numbers = np.hstack([numbers, np.tile(np.arange(first, first + len(rows)), (len(questions), 1))])
        order = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        scores, numbers = np.take_along_axis(scores, order, 1), np.take_along_axis(numbers, order, 1)
    return np.take_along_axis(numbers, np.argsort(-scores, axis=1, kind="stable"), 1)


def score_again(made: StoredVectors, question: Vectors, candidates: Numbers, depth: int) -> Numbers:
    """The best of some candidates, by their 16-bit vectors."""
    candidates = np.sort(candidates)
    scores = made[candidates].astype(np.float32) @ question
    return candidates[np.argsort(-scores, kind="stable")[:depth]]


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one setting and number of candidates."""

    recalls: tuple[float, ...]
    median: float  # milliseconds
    slow: float  # the 95th percentile


def measure(made: StoredVectors, questions: Vectors, best: Numbers, find: Find, candidates: int) -> Measured:
    """Search with every question."""
    recalls, seconds = [], []
    for question, expected in zip(questions, best, strict=True):
        started = time.thread_time()
        found = score_again(made, question, find(question, candidates), max(DEPTHS))
        seconds.append(time.thread_time() - started)
        recalls.append([len(np.intersect1d(found[:depth], expected[:depth])) / depth for depth in DEPTHS])
    median, slow = np.percentile(seconds, [50, 95]) * 1000
    return Measured(tuple(np.mean(recalls, axis=0).tolist()), float(median), float(slow))


def measure_systems(path: Path, questions: Vectors, names: Sequence[str]) -> None:
    """Print a row for each system, setting and number of candidates, as they are measured."""
    made = open_rows(path)
    best = search_exactly(made, questions, max(DEPTHS))
    columns = ("", "bytes", "minutes", "setting", "candidates", *(f"recall@{depth}" for depth in DEPTHS), "p50", "p95")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
    for name in names:
        system = SYSTEMS[name]()
        shared = make_partition(path).seconds if isinstance(system, Faiss) else 0.0
        started = time.perf_counter()
        system.build(path)
        minutes = (time.perf_counter() - started + shared) / 60
        size = system.count_bytes() / len(made)
        for setting, find in system.open_settings():
            for candidates in CANDIDATES:
                found = measure(made, questions, best, find, candidates)
                recalls = " | ".join(f"{recall:.3f}" for recall in found.recalls)
                print(
                    f"| {name} | {size:.0f} | {minutes:.1f} | {setting} | {candidates} | {recalls} "
                    f"| {found.median:.1f} | {found.slow:.1f} |",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of public files")
    parser.add_argument("kept", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--only", default=",".join(SYSTEMS))
    parser.add_argument("--likeness", action="store_true", help="how like the real vectors the made-up ones are")
    asked = parser.parse_args()
    asked.kept.mkdir(parents=True, exist_ok=True)
    real = embed_real_texts(asked.data, asked.kept / "real.npz")
    path = asked.kept / f"made-{asked.count}.f16"
    if not path.exists():
        write_made_up_vectors(fit_mixture(real.passages), asked.count, path)
    made = open_rows(path)
    if asked.likeness:
        for name, own, others in describe_likeness(real, made):
            print(f"| {name} | {own:.3f} | {others:.3f} |")
        return
    step = max(1, len(real.questions) // QUESTIONS)
    measure_systems(path, real.questions[::step][:QUESTIONS], asked.only.split(","))


if __name__ == "__main__":
    main()
