"""Answers judged by the nuggets that they should hold, and the scores that follow.

Nuggets are scored as TREC RAG has it (Pradeep et al., 2024, arXiv:2411.09607) and the Nuggetizer computes it: strict
scores count what is said in full alone, the others what is said in part as a half; `weighted` counts a nugget that is
merely okay as half a vital one.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Importance = Literal["vital", "okay"]
Assignment = Literal["support", "partial_support", "not_support"]
Verdict = Assignment | None  # how far an answer holds a nugget; None where nobody judged
MEASURES = ("vital", "strict vital", "weighted", "strict weighted", "all", "strict all")
STRICT: Mapping[Verdict, float] = {"support": 1.0}
LENIENT: Mapping[Verdict, float] = {"support": 1.0, "partial_support": 0.5}
WEIGHTS: Mapping[Importance | None, float] = {"vital": 1.0, "okay": 0.5}


@dataclass(frozen=True, slots=True)
class Nugget:
    """What an answer should hold, and the verdict of a judge on one answer."""

    text: str
    verdict: Verdict = None
    importance: Importance | None = None  # None where nobody said: iKAT has no importance


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """One answer of a run with what it is judged by; without run and text, the nuggets of a turn."""

    turn_id: str
    query: str
    run: str
    text: str
    nuggets: tuple[Nugget, ...]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """By nugget."""
        return {nugget.text: nugget.verdict for nugget in self.nuggets}


def score_nuggets(nuggets: Sequence[Nugget]) -> dict[str, float]:
    """The scores of one answer. Where no nugget has an importance, those of all nuggets alone.

    As the Nuggetizer has it, a score over no nugget at all is 0, and a nugget without assignment is not in the answer.
    """
    vital = [nugget for nugget in nuggets if nugget.importance == "vital"]
    scores = {"all": _share(nuggets, LENIENT), "strict all": _share(nuggets, STRICT)}
    if not any(nugget.importance for nugget in nuggets):
        return scores
    weights = [WEIGHTS.get(nugget.importance, 0.0) for nugget in nuggets]
    return scores | {
        "vital": _share(vital, LENIENT),
        "strict vital": _share(vital, STRICT),
        "weighted": _share(nuggets, LENIENT, weights),
        "strict weighted": _share(nuggets, STRICT, weights),
    }


def _share(nuggets: Sequence[Nugget], worth: Mapping[Verdict, float], weights: Sequence[float] = ()) -> float:
    """How much of the nuggets is in an answer, from 0 to 1."""
    weights = weights or [1.0] * len(nuggets)
    found = sum(weight * worth.get(nugget.verdict, 0.0) for nugget, weight in zip(nuggets, weights, strict=True))
    return found / sum(weights) if any(weights) else 0.0


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """Agreement of two judges beyond chance, from -1 to 1; 1 where all verdicts are equal, 0 without any verdict."""
    if not pairs:
        return 0.0
    count = len(pairs)
    equal = sum(one == other for one, other in pairs) / count
    left, right = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(left[label] * right[label] for label in left) / count**2
    return 1.0 if equal == 1.0 else (equal - chance) / (1 - chance)


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Tau-b between two orders of the same runs; None where a side ties them all."""
    from scipy.stats import kendalltau

    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return float(kendalltau(one, other).statistic)
