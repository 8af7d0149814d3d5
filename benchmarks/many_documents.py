"""How long one waits for the first answer over thousands of documents of one's own, and what they take.

    python benchmarks/many_documents.py [--documents 1000,10000] [--vectors 500]

The documents are made up, the same every time: texts, Markdown, web pages and tables of 2 to 6 kB in folders of a
hundred. Each start is `convagent chat --model none` at a terminal of its own, with models that were prepared before
and a question that is typed at once; it ends when the sentence that answers is shown. The document with that sentence
is the newest; not all others may have been read by then. Memory is the highest of the process until then (VmHWM, so
Linux only). The vectors that are made in the background are measured over a sample.
"""

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pexpect

from agent.models.registry import open_embedder
from agent.terminal.progress import stage_progress
from indexes.documents.document_index import open_documents

ROOT = Path(__file__).parent.parent
PER_FOLDER = 100
QUESTION, ANSWER = "How long does the quince jam keep?", "The quince jam keeps for nine months."
LONGEST = 1800  # seconds until an answer
SUBJECTS = """\
the boiler|the roof|the bicycle|the rent|the garden|the choir|the meeting|the harbour|the library|the school|the market
the insurance|the passport|the kitchen|the train|the museum|the bakery|the orchard|the studio|the workshop"""
VERBS = """\
was repaired|was paid|was checked|was painted|was opened|was moved|was counted|was booked|was cleaned|was measured
was ordered|was cancelled|was planned|was inspected|was delivered|was returned"""
ENDS = """\
by {name} in {month}|for {number} euros|after {number} days|before the visit of {name}|because of the rain in {month}
together with {number} others|as {name} had asked|with a note about {place}|on the way to {place}
for the {number}th time since {month}|and {name} wrote it down|although {place} was closed"""
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
SYLLABLES = "bar ben cor dal el fen gar hol is jor kal lim mor nev or pel ros sal tor ul ven wil yar zel"
WEB_PAGE = (
    "<html><head><title>{title}</title></head><body>\n<nav>Home News Contact</nav>\n{body}\n<footer>Imprint</footer>\n"
    "</body></html>\n"
)


class Writer:
    """Makes up documents about a household and a town."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def write(self, kind: str) -> str:
        """A document of 2 to 6 kB."""
        title, size = f"{self._choose(SUBJECTS).capitalize()} in {self._make_name()}", self._random.randint(2000, 6000)
        if kind == "csv":
            return "day,what,who,euros\n" + "".join(self._fill(self._make_row, size))
        paragraphs = list(self._fill(self._make_paragraph, size))
        if kind == "html":
            body = "\n".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
            return WEB_PAGE.format(title=title, body=f"<h1>{title}</h1>\n{body}")
        if kind == "md":
            parts = (f"## {self._make_name()}\n\n{paragraph}" for paragraph in paragraphs)
            return f"# {title}\n\n" + "\n\n".join(parts) + "\n"
        return f"{title}\n\n" + "\n\n".join(paragraphs) + "\n"

    def _fill(self, make: Callable[[], str], size: int) -> Iterator[str]:
        while size > 0:
            yield (part := make())
            size -= len(part)

    def _make_paragraph(self) -> str:
        return " ".join(self._make_sentence() for _ in range(self._random.randint(3, 7)))

    def _make_sentence(self) -> str:
        end = self._choose(ENDS).format(
            name=self._make_name(),
            place=self._make_name(),
            month=self._choose(MONTHS),
            number=self._random.randint(2, 900),
        )
        return f"{self._choose(SUBJECTS).capitalize()} {self._choose(VERBS)} {end}."

    def _make_row(self) -> str:
        day = f"2025-{self._random.randint(1, 12):02}-{self._random.randint(1, 28):02}"
        what = f"{self._choose(SUBJECTS).removeprefix('the ')} {self._choose(VERBS).removeprefix('was ')}"
        return f"{day},{what},{self._make_name()},{self._random.randint(2, 900)}\n"

    def _make_name(self) -> str:
        return "".join(self._random.choices(SYLLABLES.split(), k=3)).capitalize()

    def _choose(self, choices: str) -> str:
        return self._random.choice(choices.replace("\n", "|").split("|"))


def write_documents(folder: Path, count: int) -> list[Path]:
    """That many documents; one of them answers the question."""
    writer, paths = Writer(1), list[Path]()
    for number in range(count):
        kind = ("txt", "md", "txt", "html", "md", "txt", "html", "csv")[number % 8]
        path = folder / f"{number // PER_FOLDER:03}" / f"{number:05}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(writer.write(kind))
        paths.append(path)
    paths[count // 2].write_text(f"{ANSWER}\n")
    return paths


def change_documents(paths: Sequence[Path], seed: int) -> None:
    """Write each of them anew."""
    writer = Writer(seed)
    for path in paths:
        path.write_text(writer.write(path.suffix.removeprefix(".")))


@dataclass(frozen=True, slots=True)
class Start:
    """A start of the program until its first answer."""

    seconds: float
    peak_bytes: int


def measure_start(folder: Path, home: Path) -> Start:
    """Start a conversation over a folder, ask, and wait for the answer."""
    began = time.perf_counter()
    command = [str(ROOT / "cli.py"), "chat", "--docs", str(folder), "--model", "none"]
    child = pexpect.spawn(
        sys.executable, command, env=own_environment(home), dimensions=(40, 120), encoding="utf-8", timeout=LONGEST
    )
    try:
        child.expect(re.escape("\x1b[6n"))  # the terminal is asked where its cursor is
        child.send(f"\x1b[3;1R{QUESTION}\r")
        child.expect("nine months")
        seconds = time.perf_counter() - began
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{child.pid}/status").read_text())
        assert found
        return Start(seconds, 1024 * int(found[1]))
    finally:
        child.close(force=True)


def own_environment(home: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CONVAGENT_")}
    own = {"CONVAGENT_CACHE": str(home / "cache"), "CONVAGENT_DATA": str(home / "data")}
    return kept | own | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": "1"}


def measure_reading(folder: Path, home: Path) -> float:
    """How many seconds it takes until all documents are known, here without anything beside it."""
    began = time.perf_counter()
    open_documents(folder, home / "cache", None, stage_progress)
    return time.perf_counter() - began


def measure_vectors(folder: Path, home: Path, sample: int) -> tuple[int, float]:
    """How many passages there are, and how many vectors are made a second, over a sample."""
    index = open_documents(folder, home / "cache", None, stage_progress).index
    embedder = open_embedder(None)
    texts = index.read_texts(range(min(sample, len(index))))
    if not embedder or not texts:
        return len(index), 0.0
    began = time.perf_counter()
    embedder.embed(texts)
    return len(index), len(texts) / (time.perf_counter() - began)


def measure_folder(home: Path, count: int, sample: int) -> Iterator[tuple[str, str]]:
    """What there is to tell of so many documents."""
    folder = home / "documents"
    paths = write_documents(folder, count)
    yield "megabytes of documents", f"{sum(path.stat().st_size for path in paths) / 1e6:.0f}"
    first = measure_start(folder, home)
    yield "first start, seconds", f"{first.seconds:.1f}"
    yield "first start, peak memory, MB", f"{first.peak_bytes / 1e6:.0f}"
    shutil.rmtree(home / "cache" / "documents")
    yield "all read and indexed, seconds", f"{measure_reading(folder, home):.1f}"
    later = measure_start(folder, home)
    yield "later start, seconds", f"{later.seconds:.1f}"
    yield "later start, peak memory, MB", f"{later.peak_bytes / 1e6:.0f}"
    for changed in (1, 100, 1000):
        change_documents([path for path in paths if path != paths[count // 2]][:changed], seed=100 + changed)
        yield f"start after {changed:,} changed, seconds", f"{measure_start(folder, home).seconds:.1f}"
    passages, pace = measure_vectors(folder, home, sample)
    made = (home / "cache" / "documents").rglob("*")
    yield "passages", f"{passages:,}"
    yield "cache with three indexes, MB", f"{sum(path.stat().st_size for path in made if path.is_file()) / 1e6:.0f}"
    yield "vectors a second", f"{pace:.0f}"
    if pace:
        yield "vectors of all, minutes (estimated)", f"{passages / pace / 60:.0f}"


def measure_all(counts: Sequence[int], sample: int) -> dict[int, dict[str, str]]:
    """The figures of each number of documents, told as they come."""
    told: dict[int, dict[str, str]] = {}
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="convagent-benchmark-") as place:
            home = Path(place)
            write_documents(home / "warming", 2)
            measure_start(home / "warming", home)  # prepares the models
            told[count] = {}
            for what, figure in measure_folder(home, count, sample):
                told[count][what] = figure
                print(f"{count:,} documents: {what} {figure}", file=sys.stderr, flush=True)
    return told


def print_table(told: Mapping[int, Mapping[str, str]]) -> None:
    print("| documents |" + "".join(f" {count:,} |" for count in told))
    print("|---|" + "---|" * len(told))
    for what in next(iter(told.values())):
        print(f"| {what} |" + "".join(f" {figures.get(what, '')} |" for figures in told.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", default="1000,10000", help="how many, with commas between")
    parser.add_argument("--vectors", type=int, default=500, help="passages whose vectors are made")
    asked = parser.parse_args()
    print_table(measure_all([int(count) for count in asked.documents.split(",")], asked.vectors))


if __name__ == "__main__":
    main()
