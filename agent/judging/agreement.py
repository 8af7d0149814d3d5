"""How far two judges agree: Cohen's kappa over verdicts, Kendall's tau over the order of runs."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of verdicts by two judges on the same things."""

    verdicts: int
    equal: float  # share
    kappa: float  # Cohen's, without weights
    tau: Mapping[str, float]  # Kendall's tau-b between the orders of runs, by measure; without less than two runs


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """Agreement beyond chance, from -1 to 1; 1 where all verdicts are equal, 0 without any verdict."""
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
