"""How sure a mean or a difference is, where the turns of a conversation are not independent of each other.

Whole conversations are drawn, and whole conversations change sides: a system that is lost at the third turn is often
lost for the rest, so that single turns would make everything look surer than it is. All draws are from a fixed seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from scipy.stats import bootstrap, permutation_test

from agent.evaluation.scores import conversation_of

SEED = 0
RESAMPLES, PERMUTATIONS = 5_000, 20_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


def bootstrap_interval(values: Mapping[str, float]) -> Interval:
    """The mean of a value by turn id, with its percentile interval over conversations that are drawn anew.

    Raises `ValueError` where there is no value.
    """
    if not values:
        raise ValueError("no value, so no mean")
    totals, sizes = _sum_by_conversation(values)
    mean = sum(values.values()) / len(values)
    if len(totals) == 1:
        return Interval(mean, mean, mean)

    def find_mean(totals: Any, sizes: Any, axis: int) -> Any:
        return totals.sum(axis) / sizes.sum(axis)

    how = {"paired": True, "vectorized": True, "n_resamples": RESAMPLES, "method": "percentile", "rng": SEED}
    found = bootstrap((totals, sizes), find_mean, **how).confidence_interval
    return Interval(mean, float(found.low), float(found.high))


def paired_differences(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """By how much the first is above the second, at each turn that both have."""
    return {turn_id: value - other[turn_id] for turn_id, value in one.items() if turn_id in other}


def randomisation_p(differences: Mapping[str, float]) -> float:
    """The two-sided p-value of a paired randomisation test whose pairs are conversations (Smucker et al., CIKM 2007).

    Exact where there are at most `PERMUTATIONS` changes of sides, else from so many random ones.
    """
    totals = _sum_by_conversation(differences)[0] if differences else ()
    if len(totals) < 2 or not any(totals):
        return 1.0
    how = {"permutation_type": "samples", "vectorized": True, "n_resamples": PERMUTATIONS, "rng": SEED}
    return float(permutation_test((totals,), lambda totals, axis: totals.sum(axis), **how).pvalue)


def correct_by_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values of several tests, corrected so that all hold together (Holm, 1979), in the same order."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return tuple(corrected)


def _sum_by_conversation(values: Mapping[str, float]) -> tuple[Any, Any]:
    """The sum of each conversation's values, and how many they are, as arrays."""
    found: dict[str, list[float]] = {}
    for turn_id, value in values.items():
        found.setdefault(conversation_of(turn_id), []).append(value)
    return numpy.array([sum(each) for each in found.values()]), numpy.array([float(len(e)) for e in found.values()])
