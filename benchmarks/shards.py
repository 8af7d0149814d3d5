"""Whether an index in shards ranks as a single one does, and what it costs: building, queries, memory.

    python benchmarks/shards.py [--passages 200000] [--queries 2000] [--deep 200] [--shards 1,2,4,8] [--keep DIR]
    python benchmarks/shards.py --exactness   # what exact scores cost a single index, and what they change

The passages are those of `benchmarks/index.py`, made up, and so are the queries, of 3 to 10 words. Every index is built
and asked in a process of its own; those in shards are asked twice, in that process and with one more for each shard.
All queries are asked with k=10, the first with k=1000, too. Rankings are compared with those of the single index,
scores and ties included. Memory is the highest sum of the resident memory of the process and its children; files that
are mapped by several processes count for each. The load of the machine is printed: with other work beside this, times
grow, and those of processes most.
"""

import argparse
import hashlib
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from indexes.ranking.bm25 import WeighedTerms
from indexes.ranking.exact_ranking import DECIMALS, SPARE
from indexes.sharding.shard_transport import ShardProcesses, ShardsInProcess

from benchmarks.index import MadeUp, sum_resident
from indexes.corpora.corpus import find_corpus
from indexes.open_index import open_index
from indexes.passage_index import PassageIndex
from indexes.sharding.shard_builder import build_in_parts
from schemas.errors import format_count

WARMING, COMPARED = 20, 60
EXACTNESS_HEAD = "| k | words of a query | Tantivy, ms | exact, ms | texts read a query | scores that differ |"
HEAD = (
    "| index | searched | build, s | MB peak | MB on disk | ms, k=10 (95%) | k=1000 (95%) | MB | rankings that differ |"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the queries of one index took, and what came of each."""

    milliseconds: list[float]
    deep_milliseconds: list[float]
    digests: list[str]


def build(passages: Path, out: Path, shards: int) -> float:
    """Seconds of building an index; 0 shards: a single one."""
    started = time.perf_counter()
    build_in_parts(find_corpus([passages]), out, shards or None, skip_problems=False, progress=lambda: None)
    return time.perf_counter() - started


def ask(directory: Path, in_processes: bool, queries: Sequence[str], deep: int) -> Asked:
    """Ask an index all queries."""
    transport = ShardProcesses if in_processes else ShardsInProcess
    index = open_index(directory, lambda directories, _passages: transport(directories))
    for query in queries[:WARMING]:
        index.search([(query, 1.0)], 10)
    digests: list[str] = []

    def rank(query: str, k: int) -> float:
        started = time.perf_counter()
        hits = index.search([(query, 1.0)], k)
        spent = 1000 * (time.perf_counter() - started)
        digests.append(hashlib.blake2b(repr(hits).encode()).hexdigest())
        return spent

    asked = Asked([rank(query, 10) for query in queries], [rank(query, 1000) for query in queries[:deep]], digests)
    index.close()
    return asked


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
    expected: list[str] = []
    for shards in (0, *options.shards):
        directory = place / f"index-{shards}"
        shutil.rmtree(directory, ignore_errors=True)
        seconds, peak = run_measured(build, passages, directory, shards)
        disk = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / 1e6
        for in_processes in (False, True) if shards else (False,):
            asked, megabytes = run_measured(ask, directory, in_processes, queries, options.deep)
            expected = expected or asked.digests
            differing = sum(one != other for one, other in zip(expected, asked.digests, strict=True))
            times = " | ".join(map(_describe_times, (asked.milliseconds, asked.deep_milliseconds)))
            name = format_count(shards, "shard") if shards else "single"
            how = "in processes" if in_processes else "in one process"
            counts = f"{differing} of {len(expected)}"
            yield f"| {name} | {how} | {seconds:.1f} | {peak:.0f} | {disk:.0f} | {times} | {megabytes:.0f} | {counts} |"


def _describe_times(milliseconds: Sequence[float]) -> str:
    return f"{np.median(milliseconds):.2f} ({np.percentile(milliseconds, 95):.2f})"


class CountedIndex(PassageIndex):
    """An index that counts the passages whose words it has to count."""

    counted = 0

    def score_by_words(self, numbers: Sequence[int], terms: WeighedTerms) -> list[float]:
        self.counted += len(numbers)
        return super().score_by_words(numbers, terms)


def compare_with_tantivy(options: argparse.Namespace, place: Path) -> Iterator[str]:
    """A row for each depth and length of queries: the scores of a single index beside Tantivy's own."""
    passages, queries = place / "passages.jsonl", MadeUp().queries()
    MadeUp().write(passages, options.passages)
    build(passages, place / "single", 0)
    index = CountedIndex(place / "single")
    index.rank(index.weigh([(queries[0], 1.0)]), 10)  # it learns the average length
    for k in (10, 1000):
        for texts in (1, 4):
            asked = [index.weigh([(" ".join(queries[n : n + texts]), 1.0)]) for n in range(COMPARED)]
            index.counted = 0
            exact, milliseconds = _time_all(partial(index.rank, k=k), asked)
            counted = index.counted / len(asked)
            found, tantivy_milliseconds = _time_all(partial(index.find_candidates, depth=k + SPARE), asked)
            hits = sum(map(len, exact))
            differing = sum(
                round(scores[number], DECIMALS) != score
                for ranked, (numbers, given) in zip(exact, found, strict=True)
                for scores in [dict(zip(numbers.tolist(), given.tolist(), strict=True))]
                for number, score in ranked
                if number in scores
            )
            times = f"{tantivy_milliseconds:.2f} | {milliseconds:.2f}"
            yield f"| {k} | {3 * texts} to {10 * texts} | {times} | {counted:.1f} | {differing} of {hits} |"


def _time_all(find: Callable[[Any], Any], asked: Sequence[Any]) -> tuple[list[Any], float]:
    """What is found, and the median of the processor's milliseconds."""
    found, spent = [], []
    for weights in asked:
        started = time.process_time()
        found.append(find(weights))
        spent.append(1000 * (time.process_time() - started))
    return found, float(np.median(spent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--deep", type=int, default=200, help="queries that are asked with k=1000, too")
    parser.add_argument("--shards", type=lambda text: [int(count) for count in text.split(",")], default=[1, 2, 4, 8])
    parser.add_argument("--keep", type=Path, help="the directory of the indexes; without it they are deleted")
    parser.add_argument("--exactness", action="store_true", help="the scores of a single index beside Tantivy's")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="convagent-shards-") as temporary:
        place = options.keep or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        head, measure = (EXACTNESS_HEAD, compare_with_tantivy) if options.exactness else (HEAD, measure_all)
        print(head, "|---" * (head.count("|") - 1) + "|", sep="\n", flush=True)
        for row in measure(options, place):
            print(row, f"<!-- load {os.getloadavg()[0]:.1f} -->", flush=True)


if __name__ == "__main__":
    main()
