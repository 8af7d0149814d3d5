"""How many rows there are of what a question asks for, and the sums of their numbers."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from agent.turn.tables.cells import GROUP_OF, QUANTITIES, Number, split_words, stem_of
from agent.turn.tables.columns import (
    are_distinct,
    can_be_added,
    find_date_column,
    find_money_columns,
    find_quantities,
    have_same_unit,
    is_own_date,
    name_unit,
    read_column,
    read_dates_of,
)
from agent.turn.tables.question import LANGUAGES
from agent.turn.tables.rows import Row
from agent.turn.tables.selection import Selected, UnsureError, find_one

_PAYING = frozenset(split_words("pay paid spend spent buy bought earn earned receive received"))
_IN_ALL = re.compile(
    r"\b(?:in all|altogether|in total|insgesamt|zusammen|en tout|au total|en total|in totale|in totaal|bij elkaar)\b",
    re.IGNORECASE,
)
_COST = stem_of("cost")
MAX_ADDENDS = 6  # of a sum that is written out


def count_rows(selected: Selected) -> Selected:
    """How many rows there are, or the sum of the column that is counted in."""
    head = selected.matched.head
    if head is None:
        raise UnsureError("what is counted")
    if head.kind == "value":
        return _add_quantities(selected)
    if head.kind == "column" and (numbers := read_column(find_one(head.columns), selected.rows)):
        return _add(find_one(head.columns), numbers, selected)
    if find_quantities(selected.table) and head.kind == "name" and _IN_ALL.search(selected.question.rest):
        return _add_quantities(selected)
    if find_quantities(selected.table) and head.kind != "row":
        raise UnsureError("whether rows or pieces are counted")
    return list_rows(selected)


def list_rows(selected: Selected) -> Selected:
    """The rows: of what the table is named, of a column that has another value in each, or plainly of rows."""
    head = selected.matched.head
    if head is None or head.kind not in ("name", "row", "column"):
        raise UnsureError("what is listed")
    if head.kind == "column":
        check_distinct(find_one(head.columns), selected.rows)
    for column in (name for name in selected.table.columns if split_words(name) == split_words("name")):
        check_distinct(column, selected.rows)
    count, total = len(selected.rows), len(selected.table.rows)
    phrases = LANGUAGES[selected.question.language]
    return selected.conclude(
        phrases.some_rows.format(count, total) if count < total else phrases.all_rows.format(total)
    )


def check_distinct(column: str, rows: Sequence[Row]) -> None:
    """Raise `UnsureError` unless each row has another value of a column."""
    if not are_distinct(column, rows):
        raise UnsureError("whether each row is another")


def _add_quantities(selected: Selected) -> Selected:
    """The sum of the quantities, where they have no unit of their own."""
    column = find_one(find_quantities(selected.table))
    numbers = read_column(column, selected.rows)
    if not numbers or name_unit(column, numbers, selected.table, selected.rows):
        raise UnsureError("what is counted")
    return _add(column, numbers, selected)


def add_money(selected: Selected) -> Selected | None:
    """What was spent; None where the table is none of spending, and the question does not name it either."""
    names = split_words(selected.table.name)
    is_of_spending = any(GROUP_OF.get(stem) == "spending" for stem in names)
    if not is_of_spending and not set(names) & set(split_words(selected.question.rest)):
        return None
    head = selected.matched.head
    if _COST in split_words(selected.question.rest) and head and head.kind == "column":
        check_distinct(find_one(head.columns), selected.table.rows)  # "the bike" of which there were several repairs
    return add_named(selected)


def add_named(selected: Selected) -> Selected:
    """The sum of the column that is named ("how much honey"), or else of the only one that has money in it."""
    is_money = selected.question.aim != "amount"
    column = find_one(list_number_columns(selected) or (find_money_columns(selected.table) if is_money else ()))
    numbers = read_column(column, selected.rows)
    if not numbers:
        raise UnsureError("what all cells say")
    return _add(column, numbers, selected)


def list_number_columns(selected: Selected) -> list[str]:
    """The columns that a question names and that hold numbers."""
    named = [column for item in selected.matched.of_kind("column", "has") for column in item.columns]
    return [column for column in dict.fromkeys(named) if any(read_column(column, [row]) for row in selected.rows)]


def _add(column: str, numbers: Sequence[Number], selected: Selected) -> Selected:
    """The sum of a column. A total in the table must say the same where all rows are added."""
    total = sum((number.value for number in numbers), Decimal(0))
    is_of_payments = not _PAYING.isdisjoint(split_words(selected.question.rest))
    is_sound = can_be_added(column, numbers, selected.table, selected.rows, is_of_payments=is_of_payments)
    said = [found[0].value for row in selected.table.totals if (found := read_column(column, [row]))]
    is_whole = len(selected.rows) == len(selected.table.rows)
    if not is_sound or (is_whole and any(value != total for value in said)):
        raise UnsureError("whether the sum means anything")
    unit = name_unit(column, numbers, selected.table, selected.rows)
    if not unit and column.isalpha() and column.endswith("s") and not numbers[0].decimals:
        unit = "" if set(split_words(column)) & QUANTITIES else column.lower()  # what is counted: "bottles"
    whole = write_amount(f"{total:,.{max(number.decimals for number in numbers)}f}", unit, numbers[0])
    if len(numbers) == 1:
        return selected.conclude(whole, column)
    if len(numbers) > MAX_ADDENDS:
        return selected.conclude(LANGUAGES[selected.question.language].sum_of.format(len(numbers), whole), column)
    addends = " + ".join(f"{number.value:,.{number.decimals}f}" for number in numbers)
    return selected.conclude(f"{addends} = {whole}", column)


def write_amount(number: str, unit: str, like: Number) -> str:
    """A number with its unit, on the side where another number has it."""
    return f"{unit}{number}" if like.is_before and len(unit) == 1 else f"{number} {unit}".strip()


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
    value, label = _write_value(selected, column, best), _find_label(selected, best, column)
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


def _find_label(selected: Selected, row: Row, column: str) -> str:
    """The cell that names a row: of a column that is asked for, else of one of names, with words that are not given."""
    given = {item.key for item in selected.matched.of_kind("value")}
    asked = {name for item in selected.matched.of_kind("column") for name in item.columns}
    columns = selected.table.columns
    for name in sorted(columns, key=lambda name: (name not in asked, not set(split_words(name)) & _NAMES)):
        cell = row.cells.get(name, "")
        is_name = any(letter.isalpha() for letter in cell) and split_words(cell) not in given
        is_name = is_name and not read_dates_of(name, [row]) and not read_column(name, [row])
        if cell and name != column and (name in asked or is_name):
            return cell
    return ""
