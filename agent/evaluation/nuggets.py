"""Nuggets: what a good answer says, which of it an answer does say, and the scores that follow.

The scores are those of TREC RAG (Pradeep et al., 2024, arXiv:2411.09607) as the Nuggetizer computes them. Strict ones
count what is said in full alone; the others count what is said in part as a half. `weighted` counts a nugget that is
merely okay as half a vital one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Importance = Literal["vital", "okay"]
Assignment = Literal["support", "partial_support", "not_support"]
MEASURES = ("vital", "strict vital", "weighted", "strict weighted", "all", "strict all")
STRICT: Mapping[Assignment | None, float] = {"support": 1.0}
LENIENT: Mapping[Assignment | None, float] = {"support": 1.0, "partial_support": 0.5}
WEIGHTS: Mapping[Importance | None, float] = {"vital": 1.0, "okay": 0.5}


@dataclass(frozen=True, slots=True)
class Nugget:
    """One thing that a good answer says."""

    text: str
    importance: Importance | None = None  # None where nobody said: iKAT has no importance
    assignment: Assignment | None = None  # how far an answer says it; None where nobody judged


@dataclass(frozen=True, slots=True)
class NuggetList:
    """What a good answer to one turn says."""

    turn_id: str
    query: str
    nuggets: tuple[Nugget, ...]


@dataclass(frozen=True, slots=True)
class AssignedAnswer:
    """One answer of a run and which nuggets it holds."""

    turn_id: str
    query: str
    run: str
    text: str
    nuggets: tuple[Nugget, ...]  # each with its assignment


def score_nuggets(nuggets: Sequence[Nugget]) -> dict[str, float]:
    """The scores of one answer, by `MEASURES`. Where no nugget has an importance, those of all nuggets alone.

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


def _share(
    nuggets: Sequence[Nugget], worth: Mapping[Assignment | None, float], weights: Sequence[float] | None = None
) -> float:
    """How much of the nuggets is in an answer, from 0 to 1."""
    weights = weights or [1.0] * len(nuggets)
    found = sum(weight * worth.get(nugget.assignment, 0.0) for nugget, weight in zip(nuggets, weights, strict=True))
    return found / sum(weights) if any(weights) else 0.0
