"""How sure a mean or a difference is, where the turns of a conversation are not independent of each other.

Whole conversations are drawn, and whole conversations change sides: a system that is lost at the third turn is often
lost for the rest, so that single turns would make everything look surer than it is. All draws are from a fixed seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.evaluation.scores import conversation_of

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

SEED = 0
RESAMPLES = 5_000
PERMUTATIONS = 20_000
MOST_EXACT = 16  # conversations whose 2^n changes of sides are all tried
TOLERANCE = 1e-9  # by which sums of the same numbers in another order may differ


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
    import numpy

    if not values:
        raise ValueError("no value, so no mean")
    totals, sizes = _sum_by_conversation(values)
    drawn = numpy.random.default_rng(SEED).integers(len(totals), size=(RESAMPLES, len(totals)))
    low, high = numpy.quantile(totals[drawn].sum(1) / sizes[drawn].sum(1), (0.025, 0.975))
    return Interval(sum(values.values()) / len(values), float(low), float(high))


def paired_differences(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """By how much the first is above the second, at each turn that both have."""
    return {turn_id: value - other[turn_id] for turn_id, value in one.items() if turn_id in other}


def randomisation_p(differences: Mapping[str, float]) -> float:
    """The two-sided p-value of a paired randomisation test whose pairs are conversations (Smucker et al., CIKM 2007).

    Exact for up to `MOST_EXACT` conversations that differ at all, else from `PERMUTATIONS` random changes of sides.
    """
    import numpy

    totals = _sum_by_conversation(differences)[0] if differences else numpy.zeros(0)
    totals = totals[numpy.abs(totals) > TOLERANCE]
    if not len(totals):
        return 1.0
    least = abs(totals.sum()) - TOLERANCE
    if len(totals) <= MOST_EXACT:
        sums = numpy.zeros(1)
        for total in totals:
            sums = numpy.concatenate((sums + total, sums - total))
        return float((numpy.abs(sums) >= least).mean())
    sides = numpy.random.default_rng(SEED).choice((-1.0, 1.0), size=(PERMUTATIONS, len(totals)))
    return float(((numpy.abs(sides @ totals) >= least).sum() + 1) / (PERMUTATIONS + 1))


def correct_by_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values of several tests, corrected so that all hold together (Holm, 1979), in the same order."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return tuple(corrected)


def _sum_by_conversation(values: Mapping[str, float]) -> tuple["NDArray[float64]", "NDArray[float64]"]:
    """The sum of each conversation's values, and how many they are."""
    import numpy

    found: dict[str, list[float]] = {}
    for turn_id, value in values.items():
        found.setdefault(conversation_of(turn_id), []).append(value)
    return numpy.array([sum(each) for each in found.values()]), numpy.array(
        [float(len(each)) for each in found.values()]
    )
