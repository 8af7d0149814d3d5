"""A plan carried out over all rows of a table; what cannot be carried out exactly raises `UnsureError`."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agent.turn.tables.plan import Condition, TablePlan
from indexes.documents.tables.cells import NO, UNIT, Number, read_dates, split_words
from indexes.documents.tables.table import Column, Table
from schemas.errors import format_count

MAX_NAMED, MAX_ADDENDS = 10, 6  # rows that are named, and numbers that are written out in a sum
NOTHING = "–"  # in an empty cell
_TIME = re.compile(r"(?:(\d+):)?(\d+):(\d\d)(?: ?h)?")
Measure = tuple[Any, ...]  # of a cell: what it is compared by


class UnsureError(Exception):
    """A plan cannot be carried out, or in two ways."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a plan gives, in words, and the numbers of the rows that it rests on."""

    said: str
    rows: tuple[int, ...]


def carry_out(plan: TablePlan, table: Table) -> Result:
    """The result. Raises `UnsureError`."""
    columns = {column.name: column for column in table.columns}
    rows = [row for row in range(len(table.rows)) if all(_holds(one, columns[one.column], row) for one in plan.where)]
    of, by = columns.get(plan.of), columns.get(plan.by)
    _require(rows, "which rows are meant")
    _require(not table.is_doubtful or plan.do == "list", "which rows there are")
    if plan.do in ("most", "least") and by:
        return _find_largest_group(plan, by, of, table, rows)
    if plan.do == "count":
        return _count(plan, table, rows)
    _require(of, "which column is meant")
    assert of
    if plan.do == "list":
        return _list(of, table, rows)
    filled = [row for row in rows if not _says_no(of.cells[row])]
    if plan.do in ("sum", "mean"):
        return Result(_add(plan, of, table, filled), tuple(filled))
    return _find_extreme(plan, of, table, filled)


def _require(is_sure: object, what: str) -> None:
    if not is_sure:
        raise UnsureError(f"not sure: {what}")


def _says_no(cell: str) -> bool:
    return not cell or cell.casefold().strip(" .") in NO


def _holds(condition: Condition, column: Column, row: int) -> bool:
    """Whether a row has what a condition says."""
    cell, value, operator = column.cells[row], condition.value, condition.operator
    match operator:
        case "has" | "lacks":
            return _says_no(cell) == (operator == "lacks")
        case "=" | "!=":
            _require(value in column.cells or any(_are_same(each, value) for each in column.cells), "which value")
            return _are_same(cell, value) == (operator == "=")
        case "contains":
            return value.casefold() in cell.casefold()
        case "in":
            period, date = read_dates([value])[0], column.dates[row]
            _require(period, "which period is meant")
            return bool(period and date and period.holds(date))
    own, limit = measure(column)[row], measure(column, [value])[0]
    _require(limit, "which limit is meant")
    if not own or not limit:
        return False
    parts = [n for n, part in enumerate(limit) if part or len(limit) == 1]  # of a date those that the limit has
    one, other = [own[n] for n in parts], [limit[n] for n in parts]
    return (one > other, one >= other, one < other, one <= other)[(">", ">=", "<", "<=").index(operator)]


def _are_same(cell: str, value: str) -> bool:
    return cell.casefold() == value.casefold() or bool(split_words(value) and split_words(cell) == split_words(value))


def measure(column: Column, cells: Sequence[str] = ()) -> list[Measure | None]:
    """What each cell of a column, or others like them, is compared by: a time of a clock or race, a date, a number."""
    read = column if not cells else Column(column.name, cells)
    if sum(bool(_TIME.fullmatch(cell)) for cell in column.cells) * 2 > len(column.filled):
        times = [_TIME.fullmatch(cell) for cell in read.cells]
        return [(int(t[1] or 0) * 3600 + int(t[2]) * 60 + int(t[3]),) if t else None for t in times]
    if all(column.dates[row] for row in column.filled):
        return [(date.year, date.month, date.day) if date else None for date in read.dates]
    return [(number.value,) if number else None for number in read.numbers]


def _list(of: Column, table: Table, rows: Sequence[int]) -> Result:
    """The cells of a column, each with what names its row where there are several of another column."""
    label = find_label(table)
    cells = [_show_cell(of, row) for row in rows if of.cells[row]]
    if not cells and len(rows) == 1:
        return Result(f"{label.cells[rows[0]]}: {of.name} {NOTHING}", tuple(rows))
    _require(cells and len(set(cells)) <= MAX_NAMED, "what is listed")
    if len(set(cells)) > 1 and of is not label and not of.are_distinct(rows):
        cells = [f"{label.cells[row]}: {_show_cell(of, row)}" for row in rows if of.cells[row]]
    return Result(", ".join(dict.fromkeys(cells)), tuple(rows))


def _count(plan: TablePlan, table: Table, rows: Sequence[int]) -> Result:
    total, label = len(table.rows), find_label(table)
    if len(rows) == total and not plan.where:
        return Result(format_count(total, "row"), tuple(rows))
    names = list(dict.fromkeys(label.cells[row] for row in rows))
    named = f": {', '.join(names)}" if len(names) <= MAX_NAMED and all(names) else ""
    return Result(f"{len(rows)} of {format_count(total, 'row')}{named}", tuple(rows))


def _add(plan: TablePlan, of: Column, table: Table, rows: Sequence[int]) -> str:
    """The sum or mean of numbers of one unit, also where another column says it."""
    numbers = of.read_numbers(rows)
    _require(numbers, "what all cells say")
    units = [one for one in table.columns if all(one.cells[row].casefold() in UNIT for row in one.filled)]
    _require(all(len({one.cells[row] for row in rows}) == 1 for one in units), "which unit is meant")
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
    """A number with its unit, on the side where another number has it; else that of the column's name."""
    unit = like.shown_unit or next(iter(column.units), "")
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
        if not _says_no(by.cells[row]) and (of is None or of.cells[row]):
            groups[by.cells[row]].append(row)
    sizes = {name: Decimal(len(own)) for name, own in groups.items()}
    if of:
        numbers = {name: of.read_numbers(own) for name, own in groups.items()}
        _require(all(numbers.values()), "what all cells say")
        sizes = {name: sum((one.value for one in found), Decimal(0)) for name, found in numbers.items()}
    name = _rank(plan, sizes)
    own = groups[name]
    said = _add(TablePlan("sum"), of, table, own) if of else f"{len(own)} of {len(rows)} rows"
    return Result(f"{name}: {said}", tuple(own))


def _find_extreme(plan: TablePlan, of: Column, table: Table, rows: Sequence[int]) -> Result:
    """The row with the largest or smallest value."""
    measures = measure(of)
    values = {row: found for row in rows if (found := measures[row])}
    _require(len(values) == len(rows), "what all cells say")
    best, label = _rank(plan, values), find_label(table)
    value = _show_cell(of, best)
    return Result(value if of is label else f"{label.cells[best]}: {value}", (best,))


def _rank(plan: TablePlan, values: dict[Any, Any]) -> Any:
    """What has the largest or smallest value, or the one after it; nothing else may have the same."""
    order = sorted(values, key=lambda one: values[one], reverse=plan.do == "most")
    place = plan.rank - 1
    _require(0 <= place < len(order), "which of them is meant")
    _require([values[one] for one in order].count(values[order[place]]) == 1, "which of several")
    return order[place]


def find_label(table: Table) -> Column:
    """The column that names rows: the first of words that differ, else the first of words, else the first."""
    worded = [one for one in table.columns if not any((*one.numbers, *one.dates)) and not one.tells_yes_from_no]
    distinct = [one for one in worded if one.are_distinct()]
    return next(iter((*distinct, *worded, *table.columns)))
