"""How fast passages are indexed and searched, in how much memory, beside bm25s and rank_bm25, as a corpus grows.

    python benchmarks/index.py [--sizes 10k,100k,1m] [--systems convagent,bm25s] [--json FILE] [--plot FILE.png]
    python benchmarks/index.py --sizes 100k --alone   # what a query takes beside Tantivy alone

The passages are made up, the same every time: words of a Zipf vocabulary, English function words first, some 80 to a
passage, in JSON lines as the tracks have them. Every system reads that file in a process of its own. bm25s is used as
its README has it: its tokenizer with English stop words, a PyStemmer stemmer, `BM25.index` (writing to disk is not
counted for it), and `retrieve` one query at a time; rank_bm25 as its own has it, with words as they stand. What a build
takes includes reading the file. Memory is the highest sum of the resident memory of the process and its children, 50
times a second. Where other work runs beside this, seconds grow, and those of the processor say by how much.
"""

import argparse
import json
import math
import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import psutil
import tantivy

from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex

FUNCTION_WORDS = "the of and to in a is that for it as was with be by on not this are at but or they no if there into"
BEGINNINGS = [*"bcdfghjklmnprstvwz", "ch", "dr", "gl", "pl", "sh", "st", "th", "tr"]
SYLLABLES = [beginning + vowel for beginning in BEGINNINGS for vowel in "aeiou"]
ENDINGS = ["", "", "", "s", "ed", "ing", "n", "r", "ly"]
WORDS, MEDIAN_LENGTH, SPREAD, PER_DOCUMENT = 200_000, 72, 0.45, 5
AT_ONCE = 10_000  # passages that are made up together
QUERIES, WARMING = 200, 10
LONGEST = 120  # seconds of queries at a depth; rank_bm25 does not come to all of them
DEPTHS = (10, 1000)
REPEATS = 7
LARGEST = {"rank_bm25": 100_000}  # above that a query takes seconds
MEASURED = {
    "seconds": "s to build",
    "peak_megabytes": "MB peak",
    "disk_megabytes": "MB on disk",
    "median_10": "ms, k=10",
    "median_1000": "ms, k=1000",
}
Find = Callable[[str, int], object]


class System(Protocol):
    """What is measured."""

    def build(self, passages: Path, out: Path) -> None:
        """Index a file of passages."""

    def open(self, out: Path) -> Find:
        """What finds the best passages for a query; the index is in `out` from now on, if it is ever kept."""


class Convagent:
    def build(self, passages: Path, out: Path) -> None:
        build_index(find_corpus([passages]), out, skip_problems=False, progress=lambda: None)

    def open(self, out: Path) -> Find:
        index = PassageIndex(out)
        return lambda query, k: index.search([(query, 1.0)], k)


class Bm25s:
    def build(self, passages: Path, out: Path) -> None:
        import bm25s

        self.index = bm25s.BM25()
        self.index.index(self._words(_texts(passages)), show_progress=False)

    def open(self, out: Path) -> Find:
        self.index.save(out, show_progress=False)
        return lambda query, k: self.index.retrieve(self._words([query]), k=k, show_progress=False)

    def _words(self, texts: list[str]) -> Any:
        import bm25s
        import Stemmer

        return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)


class RankBm25:
    def build(self, passages: Path, out: Path) -> None:
        from rank_bm25 import BM25Okapi

        self.index = BM25Okapi([text.split(" ") for text in _texts(passages)])

    def open(self, out: Path) -> Find:
        numbers = list(range(self.index.corpus_size))
        return lambda query, k: self.index.get_top_n(query.split(" "), numbers, n=k)


SYSTEMS: dict[str, Callable[[], System]] = {"convagent": Convagent, "bm25s": Bm25s, "rank_bm25": RankBm25}


@dataclass(frozen=True, slots=True)
class Row:
    """What one system took for one corpus. Milliseconds are those of a query, at both depths."""

    system: str
    passages: int
    seconds: float
    processor_seconds: float
    peak_megabytes: float
    disk_megabytes: float
    median_10: float
    slow_10: float  # the 95th percentile
    median_1000: float
    slow_1000: float

    @property
    def pace(self) -> float:
        """Passages a second."""
        return self.passages / self.seconds


class MadeUp:
    """English as far as an index is concerned."""

    def __init__(self) -> None:
        self._words = np.array(list(_vocabulary(np.random.default_rng(1))), dtype=object)
        weights = 1 / (np.arange(len(self._words)) + 3.7)  # Zipf's law as Mandelbrot has it
        self._upto = np.cumsum(weights / weights.sum())

    def write(self, path: Path, count: int) -> None:
        """A file of passages; a larger one begins with the same ones."""
        rng = np.random.default_rng(2)
        encode = msgspec.json.Encoder().encode
        with path.open("wb") as file:
            for start in range(0, count, AT_ONCE):
                lengths = np.clip(rng.lognormal(math.log(MEDIAN_LENGTH), SPREAD, AT_ONCE), 5, 400).astype(int)
                texts = self._texts(rng, lengths)
                rows = ({**_id(start + n), "passage_text": text} for n, text in enumerate(texts[: count - start]))
                file.writelines(encode(row) + b"\n" for row in rows)

    def queries(self, count: int = QUERIES + WARMING) -> list[str]:
        """Of 3 to 10 words each."""
        rng = np.random.default_rng(3)
        return self._texts(rng, rng.integers(3, 11, count))

    def _texts(self, rng: np.random.Generator, lengths: Any) -> list[str]:
        places = np.searchsorted(self._upto, rng.random(int(lengths.sum())))
        words = self._words[np.minimum(places, len(self._words) - 1)].tolist()
        return [" ".join(words[start:end]) for start, end in pairwise([0, *np.cumsum(lengths).tolist()])]


def _vocabulary(rng: np.random.Generator) -> dict[str, None]:
    words = dict.fromkeys(FUNCTION_WORDS.split())
    while len(words) < WORDS:
        syllables = "".join(SYLLABLES[n] for n in rng.integers(0, len(SYLLABLES), rng.integers(1, 5)))
        words[syllables + ENDINGS[rng.integers(0, len(ENDINGS))]] = None
    return words


def _id(number: int) -> dict[str, str]:
    document, passage = divmod(number, PER_DOCUMENT)
    file, place = divmod(document, 100_000)
    return {"doc_id": f"clueweb22-en{file // 100:04d}-{file % 100:02d}-{place:05d}", "passage_id": str(passage)}


def _texts(passages: Path) -> list[str]:
    decode = msgspec.json.Decoder(dict[str, str]).decode
    with passages.open("rb") as file:
        return [decode(line)["passage_text"] for line in file]


def run(connection: Connection, name: str, passages: Path, out: Path, queries: list[str]) -> None:
    """The whole life of a measured process: it tells what building took, and then what each query takes."""
    system = SYSTEMS[name]()
    connection.send("ready")
    connection.recv()
    started, busy = time.perf_counter(), time.process_time()
    system.build(passages, out)
    connection.send((time.perf_counter() - started, time.process_time() - busy))
    find = system.open(out)
    connection.send([list(_milliseconds(find, queries, k)) for k in DEPTHS])


def _milliseconds(find: Find, queries: Sequence[str], k: int) -> Iterator[float]:
    end = time.monotonic() + LONGEST
    for number, query in enumerate(queries):
        if number > 2 * WARMING and time.monotonic() > end:
            return
        started = time.perf_counter()
        find(query, k)
        if number >= WARMING:
            yield 1000 * (time.perf_counter() - started)


def measure(name: str, passages: Path, count: int, queries: list[str]) -> Row:
    """A system in a fresh process."""
    out = passages.with_name(name)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run, args=(theirs, name, passages, out, queries))
    process.start()
    theirs.close()
    ours.recv()
    ours.send("go")
    peak = 0
    while not ours.poll(0.02):
        peak = max(peak, sum_resident(process.pid))
    seconds, busy = ours.recv()
    times = [(statistics.median(spent), float(np.percentile(spent, 95))) for spent in ours.recv()]
    process.join()
    disk = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    shutil.rmtree(out, ignore_errors=True)
    return Row(name, count, seconds, busy, peak / 1e6, disk / 1e6, *times[0], *times[1])


def sum_resident(pid: int | None) -> int:
    """The bytes of memory that a process and its children have, some of them shared."""
    total = 0
    process = psutil.Process(pid)
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def measure_systems(systems: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """The systems named, the small corpora first. Each row is printed when it is there."""
    made_up = MadeUp()
    queries = made_up.queries()
    print(
        "|  passages | system    | build s | CPU s | passages/s | MB peak | MB disk | ms, k=10 (95%) | k=1000 (95%) |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for count in sizes:
        with tempfile.TemporaryDirectory(prefix="convagent-benchmark-") as place:
            passages = Path(place) / "passages.jsonl"
            made_up.write(passages, count)
            for name in systems:
                if count > LARGEST.get(name, count):
                    print(f"| {count:9,} | {name:9} | not measured above {LARGEST[name]:,} |", flush=True)
                else:
                    row = measure(name, passages, count, queries)
                    print_row(row)
                    yield row


def compare_with_tantivy(sizes: Sequence[int]) -> None:
    """What queries take of the processor, beside Tantivy alone: the same queries, its hits by number and by stored id.

    The least of several runs of each query, in milliseconds on average.
    """
    print("| passages | k | Tantivy, numbers | ours, numbers | Tantivy, stored passages | ours, hits with ids |")
    print("|---|---|---|---|---|---|", flush=True)
    made_up = MadeUp()
    for count in sizes:
        with tempfile.TemporaryDirectory(prefix="convagent-benchmark-") as place:
            made_up.write(Path(place) / "passages.jsonl", count)
            Convagent().build(Path(place) / "passages.jsonl", Path(place) / "index")
            alone, ours = TantivyAlone(Path(place) / "index"), PassageIndex(Path(place) / "index")
            asked = [(query, ours.weigh([(query, 1.0)])) for query in made_up.queries()]
            for k in DEPTHS:
                spent = _least_milliseconds(_list_ways(alone, ours, k), asked)
                print(f"| {count:,} | {k} | {' | '.join(f'{each:.2f}' for each in spent)} |", flush=True)


def _list_ways(alone: "TantivyAlone", ours: PassageIndex, k: int) -> Sequence[Callable[[str, Any], object]]:
    return (
        lambda _query, weights: alone.rank(weights, k),
        lambda _query, weights: ours.rank(weights, k),
        lambda _query, weights: alone.read(weights, k),
        lambda query, _weights: ours.search([(query, 1.0)], k),
    )


class TantivyAlone:
    """The files of an index, searched with tantivy-py and nothing else."""

    def __init__(self, directory: Path) -> None:
        self._index = tantivy.Index.open(str(directory))
        self._searcher = self._index.searcher()

    def rank(self, weights: Mapping[str, float], k: int) -> list[tuple[Any, float]]:
        """The numbers of the best passages, with their scores."""
        hits = self._search(weights, k)
        numbers = self._searcher.fast_field_values("number", [address for _, address in hits])
        return list(zip(numbers, [score for score, _ in hits], strict=True))

    def read(self, weights: Mapping[str, float], k: int) -> list[tuple[bytes, float]]:
        """What is stored of the best passages, ids among it, as tantivy-py's README has it."""
        return [(self._searcher.doc(address)["passage"][0], score) for score, address in self._search(weights, k)]

    def _search(self, weights: Mapping[str, float], k: int) -> Any:
        terms = (tantivy.Query.term_query(self._index.schema, "body", term) for term in weights)
        boosted = map(tantivy.Query.boost_query, terms, weights.values())
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in boosted])
        return self._searcher.search(query, k, count=False).hits


def _least_milliseconds(ways: Sequence[Callable[..., object]], asked: Sequence[tuple[str, Any]]) -> list[float]:
    least = np.full((len(ways), len(asked)), np.inf)
    for _ in range(REPEATS):
        for way, find in enumerate(ways):
            for place, query in enumerate(asked):
                started = time.process_time()
                find(*query)
                least[way, place] = min(least[way, place], 1000 * (time.process_time() - started))
    return list(least.mean(axis=1))


def print_row(row: Row) -> None:
    disk = f"{row.disk_megabytes:7.1f}" if row.disk_megabytes else "   none"
    print(
        f"| {row.passages:9,} | {row.system:9} | {row.seconds:7.1f} | {row.processor_seconds:5.1f} | {row.pace:10,.0f} "
        f"| {row.peak_megabytes:7.0f} | {disk} | {row.median_10:6.2f} ({row.slow_10:.2f}) "
        f"| {row.median_1000:6.2f} ({row.slow_1000:.2f}) |",
        flush=True,
    )


def print_ratios(rows: Sequence[Row]) -> None:
    """Ours beside theirs, for each size."""
    print("\n| passages  | convagent beside | passages/s | MB peak | ms k=10 | ms k=1000 |\n|---|---|---|---|---|---|")
    ours = {row.passages: row for row in rows if row.system == "convagent"}
    for row in rows:
        if row.system != "convagent":
            mine = ours[row.passages]
            cells = [mine.pace / row.pace, mine.peak_megabytes / row.peak_megabytes]
            cells += [mine.median_10 / row.median_10, mine.median_1000 / row.median_1000]
            print(f"| {row.passages:9,} | {row.system:16} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")


def print_growth(rows: Sequence[Row]) -> None:
    """The exponent with which each figure grows from a size to the next: 1 is in proportion, 0 not at all."""
    print(f"\n| growth | passages | {' | '.join(MEASURED.values())} |\n|---|---|{'---|' * len(MEASURED)}")
    for name in SYSTEMS:
        for small, large in pairwise(row for row in rows if row.system == name):
            cells = (_exponent(small, large, field) for field in MEASURED)
            print(f"| {name:9} | {small.passages:,} to {large.passages:,} | {' | '.join(cells)} |")


def _exponent(small: Row, large: Row, field: str) -> str:
    before, after = getattr(small, field), getattr(large, field)
    grown = math.log(large.passages / small.passages)
    return f"{math.log(after / before) / grown:.2f}" if before and after else "-"


def plot(rows: Sequence[Row], path: Path) -> None:
    """A panel a figure, all on logarithmic axes."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(MEASURED), figsize=(4 * len(MEASURED), 3.6), layout="constrained")
    for axis, (field, title) in zip(axes, MEASURED.items(), strict=True):
        for name in SYSTEMS:
            points = [(row.passages, getattr(row, field)) for row in rows if row.system == name and getattr(row, field)]
            if points:
                axis.loglog(*zip(*points, strict=True), "o-", label=name)
        axis.set(title=title, xlabel="passages")
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=120)


def parse_size(text: str) -> int:
    """`10k` and `1m` as numbers."""
    number = text.strip().lower()
    return int(number.rstrip("km")) * {"k": 1000, "m": 1_000_000}.get(number[-1:], 1)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--sizes", default="10k,100k,1m", type=lambda text: [parse_size(size) for size in text.split(",")]
    )
    parser.add_argument("--systems", default=",".join(SYSTEMS), type=lambda text: text.split(","))
    parser.add_argument("--json", type=Path, metavar="FILE", help="the rows as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    parser.add_argument("--alone", action="store_true", help="queries beside Tantivy alone, and nothing else")
    return parser


def main() -> None:
    options = build_parser().parse_args()
    if options.alone:
        compare_with_tantivy(sorted(options.sizes))
        return
    rows = list(measure_systems(options.systems, sorted(options.sizes)))
    if "convagent" in options.systems:
        print_ratios(rows)
    print_growth(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
