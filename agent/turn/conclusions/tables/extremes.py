"""Which row of a table has the most or the least of something, or is the newest or the oldest."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from agent.turn.conclusions.tables.columns import (
    find_date_column,
    find_money_columns,
    have_same_unit,
    is_own_date,
    name_unit,
    read_column,
    read_dates_of,
)
from agent.turn.conclusions.tables.counting import check_distinct, list_number_columns, write_amount
from agent.turn.conclusions.tables.rows import Row
from agent.turn.conclusions.tables.selection import Selected, UnsureError, find_one
from agent.turn.conclusions.tables.words import split_words

_WEIGHTS = frozenset(split_words("weight kg g"))
_BIRTHS = frozenset(split_words("born birth birthday"))  # the newest contact is not the youngest
_NAMES = frozenset(split_words("name title item product what article description"))


def find_extreme(selected: Selected) -> Selected:
    """The one row that has the most or the least."""
    rows, question = selected.rows, selected.question
    if len(rows) < 2:
        raise UnsureError("of what it is the most")
    column, values = _read_ages(selected) if question.measure == "date" else _read_measured(selected)
    _check_named(selected, column)
    order = sorted(range(len(rows)), key=values.__getitem__, reverse=question.aim in ("most", "newest"))
    if values[order[0]] == values[order[1]]:
        raise UnsureError("which of two")
    best = rows[order[0]]
    value, label = _write_value(selected, column, best), next(_list_labels(selected, best, column), "")
    concluded = selected.conclude(f"{label}: {value}" if label else value, column)
    return replace(concluded, rows=(best,))


def _check_named(selected: Selected, column: str) -> None:
    """That what is asked for stands in one row each: who spent the most may have spent it in several."""
    heads = {name for item in selected.matched.of_kind("column") for name in item.columns} - {column}
    for name in heads:
        check_distinct(name, selected.rows)
    if not selected.question.measure and not heads and not selected.matched.of_kind("name"):
        raise UnsureError("of what it is the most")


def _read_measured(selected: Selected) -> tuple[str, list[Decimal]]:
    """The column that rows are measured by, and its numbers."""
    table, measure = selected.table, selected.question.measure
    if measure == "money":
        column = find_one(find_money_columns(table))
    elif measure == "weight":
        column = find_one([name for name in table.columns if set(split_words(name)) & _WEIGHTS])
    else:
        column = find_one(list_number_columns(selected))
    numbers = read_column(column, selected.rows)
    if not numbers or not have_same_unit(column, table, selected.rows):
        raise UnsureError("what all cells say")
    return column, [number.value for number in numbers]


def _read_ages(selected: Selected) -> tuple[str, list[Decimal]]:
    """The column that dates the rows, and its dates as numbers that grow with time."""
    column = find_date_column(selected.table)
    is_birth = bool(column and set(split_words(column)) & _BIRTHS)
    is_age = column and is_own_date(column) and not (is_birth and selected.question.aim == "newest")
    dates = read_dates_of(column, selected.rows) if column and is_age else None
    precisions = {(bool(date.year), bool(date.month), bool(date.day)) for date in dates or ()}
    if column is None or not dates or len(precisions) > 1 or not dates[0].year:
        raise UnsureError("how old all rows are")
    return column, [Decimal(date.year * 10000 + date.month * 100 + date.day) for date in dates]


def _write_value(selected: Selected, column: str, row: Row) -> str:
    """A cell, with the unit that its column has."""
    numbers = None if selected.question.measure == "date" else read_column(column, selected.rows)
    if not numbers or numbers[0].shown_unit:
        return row.cells[column]
    unit = name_unit(column, numbers, selected.table, selected.rows)
    return write_amount(row.cells[column], unit, numbers[0])


def _list_labels(selected: Selected, row: Row, column: str) -> Iterator[str]:
    """The cells that may name a row, those in columns of names first: words that the question did not give."""
    given = {item.key for item in selected.matched.of_kind("value")}
    asked = {name for item in selected.matched.of_kind("column") for name in item.columns}
    ordered = sorted(
        selected.table.columns,
        key=lambda name: (name not in asked, not set(split_words(name)) & _NAMES),
    )
    for name in ordered:
        cell = row.cells.get(name, "")
        if cell and name != column and name in asked:
            yield cell
        is_name = any(letter.isalpha() for letter in cell) and split_words(cell) not in given
        if name != column and is_name and not read_dates_of(name, [row]) and not read_column(name, [row]):
            yield cell
