"""Where the marks of the charts stand: numbers for the templates, which draw them as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agent.evaluation.report.comparison import Comparison, Group
from agent.evaluation.significance import Interval

STEP = 0.1  # the scale of means begins and ends at such steps
LEAST_REACH = 0.05  # of the scale of differences
TICKS = 5  # of a scale of values, about


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places on a line."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Round values along it."""
        span = self.high - self.low
        step = next(
            size * 10**power
            for power in range(-6, 9)
            for size in (1, 2, 5)
            if span / (size * 10**power) <= TICKS + TOLERANCE
        )
        first = math.ceil(self.low / step - TOLERANCE)
        last = math.floor(self.high / step + TOLERANCE)
        return [round(number * step, 9) for number in range(first, last + 1)]


TOLERANCE = 1e-9


def scale_means(cells: Sequence[Interval | None], start: float, end: float) -> Scale:
    """From the lowest to the highest end of all intervals, in steps of a tenth."""
    known = [cell for cell in cells if cell]
    low = math.floor(min((cell.low for cell in known), default=0.0) / STEP + TOLERANCE) * STEP
    high = math.ceil(max((cell.high for cell in known), default=1.0) / STEP - TOLERANCE) * STEP
    return Scale(low, max(high, low + STEP), start, end)


def scale_differences(differences: Sequence[Interval], start: float, end: float) -> Scale:
    """Both ways as far as the longest interval reaches, with nothing in the middle."""
    reach = max([LEAST_REACH, *(abs(end) for each in differences for end in (each.low, each.high))])
    reach = math.ceil(reach / LEAST_REACH - TOLERANCE) * LEAST_REACH
    return Scale(-reach, reach, start, end)


@dataclass(frozen=True, slots=True)
class Dot:
    """A mean in a chart of groups: its place, the ends of its interval, and the group that it is of."""

    x: float
    y: float
    low: float
    high: float
    group: str
    cell: Interval


@dataclass(frozen=True, slots=True)
class GroupChart:
    """A measure by group: dots beside each other, a series for each run."""

    width: float
    height: float
    scale: Scale
    labels: tuple[tuple[float, Group], ...]  # where the middle of each group is
    series: tuple[tuple[Dot, ...], ...]


def draw_groups(groups: Sequence[Group], width: float, height: float) -> GroupChart:
    """Groups along the width, values up the height; room is left for the labels."""
    left, right, top, bottom = 34.0, 8.0, 10.0, 40.0
    cells = [cell for group in groups for cell in group.cells if cell]
    scale = scale_means(cells, height - bottom, top)
    room = (width - left - right) / max(1, len(groups))
    middles = [round(left + room * (place + 0.5), 1) for place in range(len(groups))]
    runs = max((len(group.cells) for group in groups), default=0)
    apart = min(12.0, room / (runs + 1))
    series = tuple(
        tuple(
            Dot(
                round(middle + (run - (runs - 1) / 2) * apart, 1),
                scale.place(cell.mean),
                scale.place(cell.low),
                scale.place(cell.high),
                group.name,
                cell,
            )
            for middle, group in zip(middles, groups, strict=True)
            if (cell := group.cells[run])
        )
        for run in range(runs)
    )
    return GroupChart(width, height, scale, tuple(zip(middles, groups, strict=True)), series)


@dataclass(frozen=True, slots=True)
class Bar:
    """A turn in a chart of wins and losses."""

    turn_id: str
    value: float
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class BarChart:
    """Turns from the greatest win to the greatest loss."""

    width: float
    height: float
    scale: Scale
    bars: tuple[Bar, ...]


def draw_bars(values: Sequence[tuple[str, float]], width: float, height: float) -> BarChart:
    """A bar for each turn, sorted; one without a difference is a stub, so that it can be pointed at."""
    left, stub = 34.0, 1.5
    reach = max([LEAST_REACH, *(abs(value) for _, value in values)])
    low = -reach if any(value < 0 for _, value in values) else 0.0
    scale = Scale(low, reach, height - 4.0, 4.0)
    room = (width - left) / max(1, len(values))
    zero = scale.place(0.0)
    bars = []
    for place, (turn_id, value) in enumerate(sorted(values, key=lambda pair: -pair[1])):
        end = scale.place(value)
        tall = max(stub, abs(end - zero))
        top = min(end, zero) if value > 0 else zero
        bars.append(
            Bar(turn_id, value, round(left + place * room, 2), round(top, 1), round(room * 0.85, 2), round(tall, 1))
        )
    return BarChart(width, height, scale, tuple(bars))


def turn_differences(comparison: Comparison, other: int, baseline: int = 0) -> list[tuple[str, float]]:
    """By how much a run is above the baseline at each turn; without another run, the baseline's own values."""
    if other == baseline:
        return list(comparison.values[baseline].items())
    below = comparison.values[baseline]
    return [(id, value - below[id]) for id, value in comparison.values[other].items() if id in below]
