"""The runs beside each other: means with their intervals, differences with corrected tests, by depth and by kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from agent.evaluation.report.measures import Subject, turn_values
from agent.evaluation.report.request import Material
from agent.evaluation.report.turn_kinds import KINDS, find_kinds, group_by_depth
from agent.evaluation.significance import (
    Interval,
    bootstrap_interval,
    correct_by_holm,
    paired_differences,
    randomisation_p,
)

SURE = 0.05  # a difference is called sure below this corrected p
SAME = 1e-9  # values that differ by less are equal


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs by their places: by how much the second is above the first."""

    one: int
    other: int
    by: Interval
    p: float  # corrected for the pairs of this measure
    wins: int  # turns at which the second is better
    losses: int
    ties: int

    @property
    def is_sure(self) -> bool:
        return self.p < SURE

    def sign(self, place: int) -> int:
        """1 for the run that is surely above, -1 for the one below, 0 where it is not sure."""
        if not self.is_sure or place not in (self.one, self.other):
            return 0
        return 1 if (self.by.mean > 0) == (place == self.other) else -1


@dataclass(frozen=True, slots=True)
class Group:
    """Some turns: of one kind, or at one depth."""

    name: str
    turns: int  # that are measured
    cells: tuple[Interval | None, ...]  # a run each


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measure of all runs."""

    subject: str
    measure: str
    is_share: bool  # whether it lies between 0 and 1
    turns: int  # that are measured
    values: tuple[Mapping[str, float], ...]  # by turn id, a run each
    cells: tuple[Interval | None, ...]
    differences: tuple[Difference, ...]  # of every pair
    by_depth: tuple[Group, ...] = ()
    by_kind: tuple[Group, ...] = ()

    def difference(self, one: int, other: int) -> Difference | None:
        """That of two runs, in this order."""
        return next((each for each in self.differences if (each.one, each.other) == (one, other)), None)

    @property
    def order(self) -> list[int]:
        """The places of the runs that have the measure, best first."""
        known = [place for place, cell in enumerate(self.cells) if cell]
        return sorted(known, key=lambda place: -_mean(self.cells[place]))

    @property
    def sure_best(self) -> int | None:
        """The run with the highest mean, where it is surely above another one."""
        return self.order[0] if self.order and self.above(self.order[0]) else None

    def above(self, place: int) -> list[int]:
        """The runs that this one is surely above."""
        return [pair.one if pair.other == place else pair.other for pair in self.differences if pair.sign(place) > 0]


def _mean(cell: Interval | None) -> float:
    return cell.mean if cell else 0.0


def compare_runs(subjects: Sequence[Subject], material: Material) -> tuple[list[Comparison], list[Comparison]]:
    """The measures that lead, with their groups, and all others."""
    depths = group_by_depth(material.topics)
    by_turn = find_kinds(material.topics, material.statement_labels)
    kinds = {kind: tuple(id for id, found in by_turn.items() if kind in found) for kind in KINDS}
    leading, others = [], []
    for subject in subjects:
        for measure in subject.measured():
            values = tuple(turn_values(scores, measure) for scores in subject.scores)
            if measure in subject.leading:
                groups = tuple(_group(depths, values)), tuple(_group(kinds, values))
                leading.append(_compare(subject, measure, values, groups))
            else:
                others.append(_compare(subject, measure, values))
    return leading, others


def _compare(
    subject: Subject,
    measure: str,
    values: tuple[Mapping[str, float], ...],
    groups: tuple[tuple[Group, ...], tuple[Group, ...]] = ((), ()),
) -> Comparison:
    cells = tuple(bootstrap_interval(found) if found else None for found in values)
    turns = len({id for found in values for id in found})
    is_share = all(0 <= value <= 1 for found in values for value in found.values())
    return Comparison(subject.name, measure, is_share, turns, values, cells, tuple(_find_differences(values)), *groups)


def _find_differences(values: Sequence[Mapping[str, float]]) -> Iterator[Difference]:
    pairs = [
        (one, other, differences)
        for one, other in combinations(range(len(values)), 2)
        if (differences := paired_differences(values[other], values[one]))
    ]
    corrected = correct_by_holm([randomisation_p(differences) for *_, differences in pairs])
    for (one, other, differences), p in zip(pairs, corrected, strict=True):
        wins = sum(value > SAME for value in differences.values())
        losses = sum(value < -SAME for value in differences.values())
        ties = len(differences) - wins - losses
        yield Difference(one, other, bootstrap_interval(differences), p, wins, losses, ties)


def _group(groups: Mapping[str, Sequence[str]], values: Sequence[Mapping[str, float]]) -> Iterator[Group]:
    for name, turn_ids in groups.items():
        kept = [{id: found[id] for id in turn_ids if id in found} for found in values]
        if any(kept):
            measured = len({id for found in kept for id in found})
            yield Group(name, measured, tuple(bootstrap_interval(found) if found else None for found in kept))
