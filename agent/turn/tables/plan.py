"""A question about a table as an exact plan: which rows, which column, what is done with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt

from indexes.documents.tables.cells import NO, Date, read_period
from indexes.documents.tables.table import Column, Table

_COMPARE = {">": gt, ">=": ge, "<": lt, "<=": le}


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row must have. `in`: a date's year, month or day; `has`: the cell is filled, and does not say no."""

    column: Column
    operator: str
    values: tuple[str, ...] = ()  # a row has one of them with "=", none with "!="; otherwise the limit or period

    def find_rows(self) -> set[int]:
        """The numbers of the rows that have it, without those whose cells no limit can be held against."""
        cells = enumerate(self.column.cells)
        match self.operator:
            case "has" | "lacks":
                return {row for row, cell in cells if says_no(cell) == (self.operator == "lacks")}
            case "=" | "!=":
                meant = {value.casefold() for value in self.values}
                return {row for row, cell in cells if (cell.casefold() in meant) == (self.operator == "=")}
            case "in":
                period = read_period(self.values[0])
                return {row for row, date in enumerate(self.column.dates) if period and date and period.holds(date)}
        (limit,) = self.column.measure(self.values)
        if limit is None:
            return set()
        parts = [n for n, part in enumerate(limit) if part or len(limit) == 1]  # of a date those that the limit has
        wanted = [limit[n] for n in parts]
        own = ((row, [found[n] for n in parts]) for row, found in enumerate(self.column.measures) if found)
        known = ((row, found) for row, found in own if not (isinstance(limit, Date) and 0 in found))
        return {row for row, found in known if _COMPARE[self.operator](found, wanted)}


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What to do with the rows for which all conditions hold."""

    do: str  # "none", "list", "count", "sum", "mean", "most" or "least"
    of: Column | None = None  # whose cells are listed, added or compared
    by: Column | None = None  # by which rows are grouped: the most rows, or the largest sum of `of`
    rank: int = 1  # 2: the second
    where: tuple[Condition, ...] = ()
    chance: float = 1.0  # that all of it is what was asked


def find_rows(where: Sequence[Condition], table: Table) -> list[int]:
    """The numbers of the rows for which all conditions hold."""
    return sorted(set(range(len(table.rows))).intersection(*(condition.find_rows() for condition in where)))


def says_no(cell: str) -> bool:
    """Whether a cell is empty, or says that there is none."""
    return not cell or cell.casefold().strip(" .") in NO
