"""Precision and recall of the check of excerpts, on a table of sentences and passages, by kind of sentence.

    python benchmarks/support_check.py [PAIRS]

A line of the table is a passage with sentences that it supports and sentences that it does not, each with its kind.
The part `held out` was written by somebody who had not seen the rules, and shaped none of them.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent.turn.attribution import is_supported

PAIRS = Path(__file__).parent.parent / "tests" / "support_pairs.jsonl"


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence, and a passage that does or does not support it."""

    part: str
    kind: str
    supported: bool
    sentence: str
    passage: str


class _Line(msgspec.Struct):
    set: str
    passage: str
    supported: list[tuple[str, str]]
    unsupported: list[tuple[str, str]]


def read_pairs(path: Path) -> list[Pair]:
    lines = [msgspec.json.decode(line, type=_Line) for line in path.read_bytes().splitlines()]
    return [
        Pair(line.set, kind, truth, sentence, line.passage)
        for line in lines
        for truth, sentences in ((True, line.supported), (False, line.unsupported))
        for kind, sentence in sentences
    ]


def measure_check(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Precision and recall of taking a sentence for supported."""
    taken = [pair.supported for pair in pairs if is_supported(pair.sentence, pair.passage)]
    right = sum(taken)
    return right / max(1, len(taken)), right / max(1, sum(pair.supported for pair in pairs))


def main() -> None:
    pairs = read_pairs(Path(sys.argv[1]) if len(sys.argv) > 1 else PAIRS)
    print("| pairs | supported | not | precision | recall |\n|---|---|---|---|---|")
    for part in dict.fromkeys(pair.part for pair in pairs):
        found = [pair for pair in pairs if pair.part == part]
        precision, recall = measure_check(found)
        true = sum(pair.supported for pair in found)
        print(f"| {part} | {true} | {len(found) - true} | {precision:.2f} | {recall:.2f} |")
    print("\n| kind | taken for supported |\n|---|---|")
    for kind, truth in sorted({(pair.kind, pair.supported) for pair in pairs}, key=lambda key: (not key[1], key[0])):
        found = [pair for pair in pairs if (pair.kind, pair.supported) == (kind, truth)]
        taken = sum(is_supported(pair.sentence, pair.passage) for pair in found)
        print(f"| {kind} ({'supported' if truth else 'not'}) | {taken} of {len(found)} |")


if __name__ == "__main__":
    main()
