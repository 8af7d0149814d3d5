"""A plan carried out over all rows of a table; what cannot be carried out exactly raises `UnsureError`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agent.turn.tables.plan import TablePlan, find_rows, says_no
from indexes.documents.tables.cells import UNIT, Number
from indexes.documents.tables.table import Column, Table
from schemas.errors import format_count

MAX_NAMED, MAX_ADDENDS, MAX_TIES = 10, 6, 3  # rows that are named, numbers written out in a sum, first places
NOTHING = "–"  # in an empty cell


class UnsureError(Exception):
    """A plan cannot be carried out, or in two ways."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a plan gives, in words, and the numbers of the rows that it rests on."""

    said: str
    rows: tuple[int, ...]


def carry_out(plan: TablePlan, table: Table) -> Result:
    """The result. Raises `UnsureError`."""
    rows, of, by = find_rows(plan.where, table), plan.of, plan.by
    _require(rows, "which rows are meant")
    _require(not table.is_doubtful or (plan.do == "list" and len(rows) == 1), "which rows there are")
    if plan.do in ("most", "least") and by:
        return _find_largest_group(plan, by, of, table, rows)
    if plan.do == "count":
        return _count(plan, table, rows)
    _require(of, "which column is meant")
    assert of
    if plan.do == "list":
        return _list(of, table, rows)
    filled = [row for row in rows if not says_no(of.cells[row])]
    if plan.do in ("sum", "mean"):
        return Result(_add(plan, of, table, filled), tuple(filled))
    return _find_extreme(plan, of, table, filled)


def _require(is_sure: object, what: str) -> None:
    if not is_sure:
        raise UnsureError(f"not sure: {what}")


def _list(of: Column, table: Table, rows: Sequence[int]) -> Result:
    """The cells of a column; of several each with what names its row."""
    label = find_label(table)
    cells = [_show_cell(of, row) for row in rows if of.cells[row]]
    if not cells and len(rows) == 1:
        return Result(f"{label.cells[rows[0]]}: {of.name} {NOTHING}", tuple(rows))
    is_of_one = len({label.cells[row] for row in rows}) == 1 < len(rows)
    if is_of_one and of.read_numbers(rows):
        return Result(_add(TablePlan("sum"), of, table, rows), tuple(rows))  # of one thing, several times
    if len(set(cells)) > 1 and of is not label and not is_of_one and len(rows) <= MAX_NAMED:
        named = (f"{label.cells[row]}: " if label.cells[row] else "" for row in rows if of.cells[row])
        cells = [f"{name}{cell}" for name, cell in zip(named, cells, strict=True)]
    said = list(dict.fromkeys(cells))
    _require(0 < len(said) <= MAX_NAMED, "what is listed")
    return Result(", ".join(said), tuple(rows))


def _count(plan: TablePlan, table: Table, rows: Sequence[int]) -> Result:
    total, label = len(table.rows), find_label(table)
    if len(rows) == total and not plan.where:
        return Result(format_count(total, "row"), tuple(rows))
    names = list(dict.fromkeys(label.cells[row] for row in rows))
    named = f": {', '.join(names)}" if len(names) <= MAX_NAMED and all(names) else ""
    return Result(f"{len(rows)} of {format_count(total, 'row')}{named}", tuple(rows))


def _require_one_unit(table: Table, rows: Sequence[int]) -> None:
    """Where a column has nothing but units."""
    units = [one for one in table.columns if all(one.cells[row].casefold() in UNIT for row in one.filled)]
    _require(all(len({one.cells[row] for row in rows}) == 1 for one in units), "which unit is meant")


def _add(plan: TablePlan, of: Column, table: Table, rows: Sequence[int]) -> str:
    """The sum or mean of numbers of one unit, also where another column says it."""
    numbers = of.read_numbers(rows)
    _require(numbers, "what all cells say")
    _require_one_unit(table, rows)
    total, decimals = sum((one.value for one in numbers), Decimal(0)), max(one.decimals for one in numbers)
    if plan.do == "mean":
        mean = _write_amount(f"{total / len(numbers):,.{max(2, decimals)}f}", numbers[0], of)
        return f"Average of {format_count(len(numbers), 'row')}: {mean}"
    whole = _write_amount(f"{total:,.{decimals}f}", numbers[0], of)
    if len(numbers) > MAX_ADDENDS:
        return f"Sum of {len(numbers)} rows: {whole}"
    addends = " + ".join(f"{one.value:,.{one.decimals}f}" for one in numbers)
    return whole if len(numbers) == 1 else f"{addends} = {whole}"


def _write_amount(number: str, like: Number, column: Column) -> str:
    """A number with its unit, on the side where another number has it; else that of the column's name, or this."""
    unit = like.shown_unit or next(iter(column.units), f"({column.plain_name})")
    return f"{unit}{number}" if like.is_before and len(unit) == 1 else f"{number} {unit}".strip()


def _show_cell(column: Column, row: int) -> str:
    """A cell, with the unit that the column's name has where it is a bare number."""
    number = column.numbers[row]
    is_bare = number and not number.shown_unit and not column.dates[row]
    return " ".join((column.cells[row], *(column.units[:1] if is_bare else ())))


def _find_largest_group(plan: TablePlan, by: Column, of: Column | None, table: Table, rows: Sequence[int]) -> Result:
    """Which value of a column has the most rows, or the largest sum."""
    groups = defaultdict[str, list[int]](list)
    for row in rows:
        if not says_no(by.cells[row]) and not (of and says_no(of.cells[row])):
            groups[by.cells[row]].append(row)
    sizes = {name: Decimal(len(own)) for name, own in groups.items()}
    if of:
        _require_one_unit(table, rows)
        numbers = {name: of.read_numbers(own) for name, own in groups.items()}
        _require(all(numbers.values()), "what all cells say")
        sizes = {name: sum((one.value for one in found), Decimal(0)) for name, found in numbers.items()}
    names = _rank(plan, sizes)
    own = groups[names[0]]
    said = _add(TablePlan("sum"), of, table, own) if of else f"{len(own)} of {len(rows)} rows"
    each = " each" if len(names) > 1 else ""
    return Result(f"{', '.join(names)}: {said}{each}", tuple(row for name in names for row in groups[name]))


def _find_extreme(plan: TablePlan, of: Column, table: Table, rows: Sequence[int]) -> Result:
    """The row with the largest or smallest value."""
    _require_one_unit(table, rows)
    values = {row: found for row in rows if (found := of.measures[row])}
    _require(len(values) == len(rows), "what all cells say")
    best, label = _rank(plan, values), find_label(table)
    value = _show_cell(of, best[0])
    named = ", ".join(label.cells[row] for row in best)
    return Result(value if of is label else f"{named}: {value}", tuple(best))


def _rank(plan: TablePlan, values: dict[Any, Any]) -> list[Any]:
    """What has the largest or smallest value, or the one after it; a few may share the first place."""
    order = sorted(values, key=lambda one: values[one], reverse=plan.do == "most")
    _require(plan.rank <= len(order), "which of them is meant")
    found = [one for one in order if values[one] == values[order[plan.rank - 1]]]
    _require(len(found) <= (MAX_TIES if plan.rank == 1 else 1), "which of several")
    return found


def find_label(table: Table) -> Column:
    """The column that names rows: the first of words that differ, else the first of words, else the first."""
    told = (one for one in table.columns if not (one.has_times or one.tells_yes_from_no))
    worded = [one for one in told if not any((*one.numbers, *one.dates))]
    distinct = [one for one in worded if one.are_distinct()]
    return next(iter((*distinct, *worded, *table.columns)))
