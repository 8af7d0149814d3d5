"""A rough proxy for a judge by the bundled embedding model: how near an answer comes to a text, as a number.

It knows what an answer is about, and not whether it says the contrary; docs/evaluation.md has what was measured. The
cut-offs between verdicts are from half of ClapNQ's questions (`python -m benchmarks.rough_judges`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.evaluation.nuggets import Assignment
from indexes.ranking.vectors import Embed
from indexes.text.units import split_units
from schemas.records import Passage

Strength = Callable[[str, Sequence[str]], list[float]]  # of an answer and texts: how near it comes to each


@dataclass(frozen=True, slots=True)
class CutOffs:
    """The strengths from which on a verdict is given, best first; below all of them it is the last verdict."""

    verdicts: tuple[Any, ...]
    strengths: tuple[float, ...]

    def label(self, strength: float) -> Any:
        """The verdict for a strength."""
        passed = sum(strength < least for least in self.strengths)
        return self.verdicts[passed]


ASSIGNMENTS: tuple[Assignment, ...] = ("support", "partial_support", "not_support")
GRADES = (5, 4, 3, 2, 1, 0)
SIMILAR_NUGGETS = CutOffs(ASSIGNMENTS, (0.75, 0.65))
SIMILAR_QUESTIONS = CutOffs(GRADES, (0.75, 0.65, 0.55, 0.45, 0.35))


def similarity(embed: Embed) -> Strength:
    """The cosine of a text with what is nearest to it in the answer: a sentence, two of them, or all."""

    def measure(answer: str, texts: Sequence[str]) -> list[float]:
        cosines = embed(texts) @ embed(_split_windows(answer)).T
        return [float(cosine) for cosine in cosines.max(axis=1)]

    return measure


def _split_windows(answer: str) -> list[str]:
    sentences = [unit.text for unit in split_units(Passage("", answer))]
    pairs = (" ".join(sentences[start : start + 2]) for start in range(len(sentences) - 1))
    return list(dict.fromkeys((*sentences, *pairs, answer)))
