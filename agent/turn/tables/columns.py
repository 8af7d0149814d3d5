"""What the columns of a table hold: numbers that can be added, dates, names; and what may not be computed over."""

import re
from collections.abc import Sequence

from agent.turn.tables.cells import (
    CURRENCY_OF,
    QUANTITIES,
    UNIT_OF,
    UNIT_WORDS,
    Date,
    Number,
    read_dates,
    read_numbers,
    read_unit,
    split_words,
    stem_of,
)
from agent.turn.tables.rows import Row, Table
from indexes.words import list_tables


def _stems(words: str) -> frozenset[str]:
    return frozenset(split_words(words))


_COLUMNS = {name: _stems(" ".join(words)) for name, words in list_tables("columns").items()}
_MONEY = _COLUMNS["money"] | UNIT_WORDS
_OWN_DATES, _KINDS_OF_ROW, _UNIT_COLUMNS = _COLUMNS["own_dates"], _COLUMNS["kinds_of_row"], _COLUMNS["units"]
_BY = re.compile(r" (?:by|von|par|por|da|door|am|le|el|il|op)\b", re.IGNORECASE)  # who or when, and not whether
_RATES = frozenset(("a", "an", "per", "each", "pro", "je", "%", "percent"))
# Words of which a real header has one; a first row that was taken for it seldom does.
HEADER_WORDS = _MONEY | _OWN_DATES | _KINDS_OF_ROW | _UNIT_COLUMNS | QUANTITIES | _COLUMNS["other"]


def read_column(column: str, rows: Sequence[Row]) -> list[Number] | None:
    """The numbers of a column in some rows; None where one is missing or no plain number, or their units differ."""
    if not rows or any(column not in row.cells for row in rows):
        return None
    numbers = read_numbers([row.cells[column] for row in rows])
    return numbers if numbers and len({number.unit for number in numbers}) == 1 else None


def read_dates_of(column: str, rows: Sequence[Row]) -> list[Date] | None:
    """The dates of a column in some rows; None where one is missing or no plain date."""
    if not rows or any(column not in row.cells for row in rows):
        return None
    return read_dates([row.cells[column] for row in rows])


def are_distinct(column: str, rows: Sequence[Row]) -> bool:
    """Whether each row has another value of a column."""
    values = {split_words(row.cells.get(column, "")) for row in rows}
    return len(values) == len(rows) and () not in values


def find_date_column(table: Table) -> str | None:
    """The one column that dates the rows: the only one of dates, or the only one of them that is named so."""
    dated = [column for column in table.columns if read_dates_of(column, [r for r in table.rows if column in r.cells])]
    dated = [column for column in dated if not _holds_plain_numbers(column, table)]
    named = [column for column in dated if set(split_words(column)) & _OWN_DATES]
    return named[0] if len(named) == 1 else dated[0] if len(dated) == 1 and not named else None


def is_own_date(column: str) -> bool:
    """Whether a column says how old a row is, and not when it ends or was last seen."""
    return set(split_words(column)) <= _OWN_DATES | _stems("of the on")


def _holds_plain_numbers(column: str, table: Table) -> bool:
    """Whether what reads like years may be anything: 1990 in a column that no word says it of."""
    digits = all(row.cells.get(column, "0").isdigit() for row in table.rows)
    return digits and not set(split_words(column)) & (_OWN_DATES | _stems("year jahr vintage"))


def find_money_columns(table: Table) -> list[str]:
    """The columns of amounts of money, by their names or because all cells have a currency."""
    return [column for column in table.columns if _is_money(column, table)]


def _is_money(column: str, table: Table) -> bool:
    rows = [row for row in table.rows if column in row.cells]
    numbers = read_numbers([row.cells[column] for row in rows])
    if not numbers:
        return False
    return bool(set(split_words(column)) & _MONEY) or all(number.unit in CURRENCY_OF.values() for number in numbers)


def can_be_added(
    column: str, numbers: Sequence[Number], table: Table, rows: Sequence[Row], *, is_of_payments: bool = True
) -> bool:
    """Whether the sum of a column means something: no rates, balances and positions, and nothing that tells rows apart.

    A price beside a quantity is that of one. Whether something is paid tells rows apart where it is asked for payments.
    """
    stems = set(split_words(column))
    if (
        stems & _COLUMNS["no_sum"]
        or set(numbers[0].shown_unit.casefold().split()) & _RATES
        or any(n.value < 0 for n in numbers)
    ):
        return False
    has_quantity = any(_counts_pieces(other, table) for other in table.columns if other != column)
    if has_quantity and stems & _MONEY and not stems & _COLUMNS["total_money"]:
        return False
    if _may_be_reading(column, numbers, table):
        return False
    kinds = _KINDS_OF_ROW if is_of_payments else _KINDS_OF_ROW - _stems("paid")
    states = [other for other in table.columns if set(split_words(other)) & kinds and not _BY.search(other)]
    return have_same_unit(column, table, rows) and all(_count_values(state, rows) == 1 for state in states)


def find_quantities(table: Table) -> list[str]:
    """The columns that say how many of something a row stands for."""
    return [column for column in table.columns if set(split_words(column)) & QUANTITIES]


def _may_be_reading(column: str, numbers: Sequence[Number], table: Table) -> bool:
    """Whether a measure may be read off a meter: it only grows from row to row, or there are too few to tell."""
    is_measure = bool(numbers[0].unit) or any(is_unit(word) or stem_of(word) in UNIT_OF for word in column.split())
    if _is_money(column, table) or not is_measure:
        return False
    values = [n.value for n in read_column(column, [row for row in table.rows if column in row.cells]) or ()]
    dates = read_dates_of(find_date_column(table) or "", table.rows)
    if dates and len(dates) == len(values):
        values = [value for _, value in sorted(zip(dates, values, strict=True), key=lambda pair: pair[0])]
        return len(values) < 3 or values == sorted(set(values))
    return len(values) < 3 or values in (sorted(set(values)), sorted(set(values), reverse=True))


def _counts_pieces(column: str, table: Table) -> bool:
    """Whether a column says how many of something: "quantity", "bottles"."""
    if set(split_words(column)) & QUANTITIES:
        return True
    numbers = read_column(column, [row for row in table.rows if column in row.cells])
    return column.endswith("s") and bool(numbers) and not any(n.decimals or n.unit for n in numbers or ())


def have_same_unit(column: str, table: Table, rows: Sequence[Row]) -> bool:
    """Whether no other column says a unit, a currency or a period that differs between some rows."""
    units = [
        other
        for other in table.columns
        if set(split_words(other)) <= _UNIT_COLUMNS and read_column(other, rows) is None
    ]
    cells = {other: [row.cells.get(other, "") for row in rows] for other in table.columns if other != column}
    periods = [
        other
        for other, said in cells.items()
        if all(set(split_words(cell)) & _COLUMNS["periods"] and len(cell.split()) <= 3 for cell in said)
    ]
    return all(_count_values(other, rows) == 1 for other in (*units, *periods))


def name_unit(column: str, numbers: Sequence[Number], table: Table, rows: Sequence[Row]) -> str:
    """The unit as it is shown: that of the cells, of a column of units, or in the column's name."""
    if numbers[0].shown_unit:
        return numbers[0].shown_unit
    units = [other for other in table.columns if set(split_words(other)) <= _UNIT_COLUMNS]
    if len(units) == 1 and _count_values(units[0], rows) == 1:
        return next(iter(rows)).cells.get(units[0], "")
    return next((word for word in column.replace("(", " ").replace(")", " ").split() if is_unit(word)), "")


def is_unit(word: str) -> bool:
    """Whether a word is a currency or the short name of a measure."""
    unit, size = read_unit(word)
    return unit in CURRENCY_OF.values() or bool(size)


def _count_values(column: str, rows: Sequence[Row]) -> int:
    return len({row.cells.get(column, "").casefold() for row in rows})
