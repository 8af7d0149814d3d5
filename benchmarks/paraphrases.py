"""The check of what the small model writes, on the replies that it was taught with and on the same spoilt.

    python -m benchmarks.paraphrases [REPLIES]

A true pair is a written sentence and those that it cites. Spoilt, it has another name, number, negation or relation,
lacks a hedge, or cites a sentence of another question.
"""

import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.turn.writing.paraphrase import is_meant
from agent.turn.writing.sources import read_written

REPLIES = Path(__file__).parent.parent / "training" / "written_replies.jsonl"
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}")
DENIED = re.compile(r"\b(?:not|no|never|without) |(?<=can)not\b")
VERB = re.compile(r"\b(?:is|are|was|were|can|may|will|has|have|must|should)\b")
HEDGE = re.compile(r"\b(?:(?:about|around)(?= \d)|only|usually|may|some|often|at least|mostly|almost) ")
OPPOSITES = """more less before after first last higher lower until from over under all some largest smallest best worst
hot cold open closed left right winter summer north south won lost earlier later morning evening with without weeks days
month year minimum maximum""".split()  # noqa: SIM905
TURNED = {word: OPPOSITES[place ^ 1] for place, word in enumerate(OPPOSITES)}


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence, what it cites, the headings above that, and what was asked."""

    kind: str  # "true", or how it was spoilt
    written: str
    sources: tuple[str, ...]
    headings: str
    asked: str


def read_pairs(path: Path = REPLIES) -> list[Pair]:
    """The true pairs of a file, and the spoilt ones, always the same."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    order, true = random.Random(0), list[Pair]()  # noqa: S311
    for row in rows:
        for text, numbers in read_written(row["reply"]):
            cited = [row["sources"][number - 1] for number in numbers]
            headings, asked = " . ".join(each["name"] for each in cited), " . ".join([row["question"], *row["person"]])
            true.append(Pair("true", text, tuple(each["text"] for each in cited), headings, asked))
    return [*true, *(spoilt for pair in true for spoilt in _spoil(pair, true, order))]


def _spoil(pair: Pair, others: Sequence[Pair], order: random.Random) -> Iterator[Pair]:
    text, other = pair.written, order.choice(others)
    yield replace(pair, kind="other sentence", sources=other.sources)
    names, numbers = sorted(set(NAME.findall(text))), sorted(set(re.findall(r"\d+", text)))
    foreign = NAME.findall(other.written)
    if names and foreign:
        yield replace(pair, kind="name", written=text.replace(order.choice(names), foreign[0], 1))
    for kind, found in (("names", names), ("numbers", numbers)):
        if len(found) > 1:
            a, b = order.sample(found, 2)
            yield replace(pair, kind=f"{kind} swapped", written=_swap(text, a, b))
    if numbers:
        number = order.choice(numbers)
        yield replace(pair, kind="number", written=text.replace(number, str(int(number) + order.randint(1, 9)), 1))
    denied = DENIED.sub("", text, count=1) if DENIED.search(text) else VERB.sub(r"\g<0> not", text, count=1)
    turned = re.sub(r"\w+", lambda found: TURNED.get(found[0], found[0]), text)
    for kind, spoilt in (("negation", denied), ("relation", turned), ("hedge", HEDGE.sub("", text, count=1))):
        if spoilt != text:
            yield replace(pair, kind=kind, written=spoilt)


def _swap(text: str, a: str, b: str) -> str:
    return re.sub(rf"{re.escape(a)}|{re.escape(b)}", lambda found: b if found[0] == a else a, text)


def count_passed(pairs: Sequence[Pair]) -> dict[str, tuple[int, int]]:
    """Of each kind: how many pass the check, of how many."""
    passed = defaultdict[str, list[bool]](list)
    for pair in pairs:
        passed[pair.kind].append(is_meant(pair.written, pair.sources, pair.headings, pair.asked))
    return {kind: (sum(each), len(each)) for kind, each in passed.items()}


def measure(pairs: Sequence[Pair]) -> tuple[float, float]:
    """The share of the true pairs that pass, and of the spoilt ones."""
    counts = count_passed(pairs)
    right, true = counts.pop("true")
    wrong, spoilt = map(sum, zip(*counts.values(), strict=True))
    return right / true, wrong / spoilt


def main() -> None:
    pairs = read_pairs(Path(sys.argv[1]) if len(sys.argv) > 1 else REPLIES)
    print("| pair | passes |\n|---|---|")
    for kind, (passed, count) in count_passed(pairs).items():
        print(f"| {kind} | {passed} of {count} |")
    meant, misstated = measure(pairs)
    print(f"\n{meant:.3f} of the true ones pass, {misstated:.3f} of the spoilt ones.")


if __name__ == "__main__":
    main()
