"""How a figure grows with the size of a collection: a power law through measured points, and what follows from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """`factor * size ** exponent`, by least squares of the logarithms."""

    factor: float
    exponent: float
    margin: float  # of the exponent: half the width of its 95 % interval
    points: int
    _residual: float  # standard deviation of the logarithms around the line
    _centre: float  # mean logarithm of the sizes
    _spread: float  # sum of squares of the logarithms of the sizes around their mean

    def predict(self, size: float) -> float:
        return float(self.factor * size**self.exponent)

    def predict_interval(self, size: float) -> tuple[float, float]:
        """Where 95 % of measurements of that size would be, if it grew on as it did."""
        from scipy.stats import t

        leverage = 1 + 1 / self.points + (math.log(size) - self._centre) ** 2 / self._spread
        margin = t.ppf(0.975, self.points - 2) * self._residual * math.sqrt(leverage)
        return self.predict(size) * math.exp(-margin), self.predict(size) * math.exp(margin)


def fit_power_law(sizes: Sequence[float], values: Sequence[float]) -> PowerLaw:
    """Through three points at least, of two sizes at least."""
    from scipy.stats import linregress, t

    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    line = linregress(x, y)
    degrees, centre = len(x) - 2, sum(x) / len(x)
    residuals = [b - line.intercept - line.slope * a for a, b in zip(x, y, strict=True)]
    residual = math.sqrt(sum(each**2 for each in residuals) / degrees)
    margin = float(t.ppf(0.975, degrees) * line.stderr)
    spread = sum((each - centre) ** 2 for each in x)
    return PowerLaw(math.exp(line.intercept), float(line.slope), margin, len(x), residual, centre, spread)
