"""The rows of a table that a question asks for. Raises `UnsureError` where that could be understood in two ways."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.turn.tables.cells import NO, YES, Period, split_words
from agent.turn.tables.columns import are_distinct, find_date_column, read_column, read_dates_of
from agent.turn.tables.matching import Item, Matched, TableWords
from agent.turn.tables.question import TableQuestion
from agent.turn.tables.rows import Row, Table
from indexes.words import list_words

_DOUBTFUL = re.compile(
    r"\?|\b(?:not|no|none|unknown|pending|tbd|missing|lost|kein\w*|unbekannt|yet|maybe)\b", re.IGNORECASE
)
_PEOPLE = frozenset(split_words(" ".join(list_words("columns.people"))))


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows of a table that a question asks for, and what follows from them."""

    question: TableQuestion
    matched: Matched
    table: Table
    rows: tuple[Row, ...]
    direct: str = ""  # "7 of 22 rows"

    def conclude(self, direct: str, column: str = "") -> "Selected":
        """The same with what follows, computed over a column.

        Raises `UnsureError` where the question names another column, and says nothing of it: "which are approved?".
        """
        head, values = self.matched.head, self.matched.of_kind("value")
        meant = {column, *(head.columns if head else ()), *(one for item in values for one in item.columns)}
        name = set(split_words(self.table.name))
        meant |= {one for one in self.table.columns if set(split_words(one)) <= name}
        key = self.table.columns[0]  # what a row is called is what it is
        meant |= {key} if are_distinct(key, self.table.rows) else set()
        if any(meant.isdisjoint(item.columns) for item in self.matched.of_kind("column")):
            raise UnsureError("what is said of a column")
        return replace(self, direct=direct)


class UnsureError(Exception):
    """A question is about a table, but what it asks for is not sure."""


def select_rows(matched: Matched, words_of: TableWords) -> tuple[Row, ...]:
    """The rows that have all values, conditions and the period of a question."""
    table = words_of.table
    if matched.is_about_speaker and any(_names_people(column, table) for column in table.columns):
        raise UnsureError("which of the people it asks for")
    rows = table.rows
    for item, column in _list_values(matched, words_of):
        rows = tuple(row for row in rows if split_words(row.cells.get(column, "")) == item.key)
    for item in matched.of_kind("has", "lacks"):
        column = find_one(item.columns)
        rows = tuple(row for row in rows if _holds(row, column, table) == (item.kind == "has"))
    rows = _select_period(matched, table, rows)
    if len({row.text for row in rows}) < len(rows):
        raise UnsureError("whether equal rows are one")
    return rows


def _names_people(column: str, table: Table) -> bool:
    """Whether a column says who did something, and not only whether or when, or how much."""
    rows = [row for row in table.rows if column in row.cells]
    if not set(split_words(column)) & _PEOPLE or read_column(column, rows) or read_dates_of(column, rows):
        return False
    return not all(row.cells[column].casefold() in YES | NO for row in rows)


def find_one(columns: Sequence[str]) -> str:
    """The only column that may be meant."""
    if len(columns) != 1:
        raise UnsureError("which column is meant")
    return columns[0]


def _list_values(matched: Matched, words_of: TableWords) -> Iterator[tuple[Item, str]]:
    """Each value with its column: the one that is named before it, else the only one that has it."""
    named: tuple[str, ...] = ()
    fixed: dict[str, None] = {}
    for item in matched.items:
        if item.kind == "value":
            column = find_one([one for one in item.columns if one in named] or item.columns)
            _check_value(item, column, words_of.table)
            if column in fixed:
                raise UnsureError("two values of a column")
            fixed[column] = None
            yield item, column
        if item.kind != "neutral":
            named = item.columns if item.kind == "column" else ()


def _check_value(item: Item, column: str, table: Table) -> None:
    """A value that is also a part of another value of its column ("food", "pet food") may mean both."""
    cells = {split_words(row.cells.get(column, "")) for row in table.rows} - {item.key}
    if any(set(item.key) <= set(cell) for cell in cells):
        raise UnsureError("whether a longer value is meant as well")


def _holds(row: Row, column: str, table: Table) -> bool:
    """Whether a row has what a column says: "yes", or anything that is not "no" or "-"."""
    cell = row.cells.get(column, "").casefold().strip(" .")
    if not cell or cell in NO:
        return False
    if cell not in YES and _DOUBTFUL.search(cell):
        raise UnsureError("whether a cell says that there is none")
    return True


def _select_period(matched: Matched, table: Table, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows of the period that is asked for. Where no year is named, all must be of one."""
    asked = [item.period for item in matched.of_kind("period") if item.period]
    if not asked:
        return rows
    if len(asked) != 1:
        raise UnsureError("which period is meant")
    [period] = asked
    column = find_date_column(table)
    if column is None:
        return _select_year_of_table(period, table, rows)
    dates = read_dates_of(column, rows)
    if dates and str(period.year) in split_words(table.around) and not any(date.year for date in dates):
        period = replace(period, year=0)
    if dates is None or not all(period.is_decided_by(date) for date in dates):
        raise UnsureError("when all rows are from")
    fitting = [(row, date) for row, date in zip(rows, dates, strict=True) if period.holds(date)]
    if not period.year and len({date.year for _, date in fitting}) > 1:
        raise UnsureError("which year is meant")
    return tuple(row for row, _ in fitting)


def _select_year_of_table(period: Period, table: Table, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """All rows of a table without dates whose name or headings say the year; none where they say another."""
    years = [stem for stem in split_words(table.around) if re.fullmatch(r"(?:19|20)\d\d", stem)]
    if period != Period(period.year) or not years:
        raise UnsureError("which column is the date")
    return rows if str(period.year) in years else ()
