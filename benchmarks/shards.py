"""How near an index in shards comes to a single one, and what it costs: building, queries, memory.

    python benchmarks/shards.py [--passages 200000] [--queries 2000] [--deep 200] [--shards 2,4,8] [--keep DIR]

The passages are those of `benchmarks/index.py`, made up, and so are the queries, of 3 to 10 words. Every index is built
and asked in a process of its own. All queries are asked with k=10 and k=100, the first with k=1000, too. An overlap is
the share of the single index's first passages that are among as many first ones here, on average over the queries.
Memory is the highest resident memory of the process. The load of the machine is printed: with other work beside this,
times grow.
"""

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.index import MadeUp, sum_resident
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.sharding.sharded_index import open_index
from schemas.errors import format_count

WARMING = 20
HEAD = (
    "| index | build, s | MB peak | MB on disk | ms, k=10 (95%) | k=1000 (95%) | MB "
    "| of the first 10 | of the first 100 |"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the queries of one index took, and the first hundred passages for each."""

    milliseconds: list[float]
    deep_milliseconds: list[float]
    found: list[list[str]]


def build(passages: Path, out: Path, shards: int) -> float:
    """Seconds of building an index; 0 shards: a single one."""
    started = time.perf_counter()
    build_index(find_corpus([passages]), out, shards or None, skip_problems=False, progress=lambda: None)
    return time.perf_counter() - started


def ask(directory: Path, queries: Sequence[str], deep: int) -> Asked:
    """Ask an index all queries."""
    index = open_index(directory)
    for query in queries[:WARMING]:
        index.search([(query, 1.0)], 10)

    def rank(query: str, k: int) -> float:
        started = time.perf_counter()
        index.search([(query, 1.0)], k)
        return 1000 * (time.perf_counter() - started)

    times = [rank(query, 10) for query in queries], [rank(query, 1000) for query in queries[:deep]]
    found = [[hit.id for hit in index.search([(query, 1.0)], 100)] for query in queries]
    index.close()
    return Asked(*times, found)


def overlap(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]], first: int) -> float:
    """The share of the first expected passages that are found among as many, on average."""
    pairs = ((one[:first], other[:first]) for one, other in zip(found, expected, strict=True) if other)
    return float(np.mean([len({*one} & {*other}) / len(other) for one, other in pairs]))


def run_measured(work: Callable[..., Any], *arguments: object) -> tuple[Any, float]:
    """What a function returns in a process of its own, and the megabytes that this took at most."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_work, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    peak = 0
    while not ours.poll(0.05):
        peak = max(peak, sum_resident(process.pid))
    result = ours.recv()
    process.join()
    return result, peak / 1e6


def _work(connection: Connection, work: Callable[..., Any], arguments: Sequence[object]) -> None:
    connection.send(work(*arguments))


def measure_all(options: argparse.Namespace, place: Path) -> Iterator[str]:
    """The rows of the table."""
    passages, queries = place / "passages.jsonl", MadeUp().queries(options.queries)
    if not passages.exists():
        MadeUp().write(passages, options.passages)
    expected: list[list[str]] = []
    for shards in (0, *options.shards):
        directory = place / f"index-{shards}"
        shutil.rmtree(directory, ignore_errors=True)
        seconds, peak = run_measured(build, passages, directory, shards)
        disk = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / 1e6
        asked, megabytes = run_measured(ask, directory, queries, options.deep)
        expected = expected or asked.found
        times = " | ".join(map(_describe_times, (asked.milliseconds, asked.deep_milliseconds)))
        shares = " | ".join(f"{overlap(asked.found, expected, first):.3f}" for first in (10, 100))
        name = format_count(shards, "shard") if shards else "single"
        yield f"| {name} | {seconds:.1f} | {peak:.0f} | {disk:.0f} | {times} | {megabytes:.0f} | {shares} |"


def _describe_times(milliseconds: Sequence[float]) -> str:
    return f"{np.median(milliseconds):.2f} ({np.percentile(milliseconds, 95):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--deep", type=int, default=200, help="queries that are asked with k=1000, too")
    parser.add_argument("--shards", type=lambda text: [int(count) for count in text.split(",")], default=[2, 4, 8])
    parser.add_argument("--keep", type=Path, help="the directory of the indexes; without it they are deleted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="convagent-shards-") as temporary:
        place = options.keep or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        print(HEAD, "|---" * (HEAD.count("|") - 1) + "|", sep="\n", flush=True)
        for row in measure_all(options, place):
            print(row, f"<!-- load {os.getloadavg()[0]:.1f} -->", flush=True)


if __name__ == "__main__":
    main()
