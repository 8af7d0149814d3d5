"""Tables with all their rows and typed columns, read from the passages of a whole document.

The readers of documents write a row as a line, `name: value; name: value.`, without empty values. A line belongs to the
table above it where it has its columns. Where it is not sure that all rows were found, the table is doubtful.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from indexes.documents.collection import WholeDocuments
from indexes.documents.tables.cells import (
    CURRENCIES,
    NO,
    ROLES,
    UNIT,
    YES,
    Date,
    Number,
    drop_generic,
    read_dates,
    read_numbers,
    split_words,
)
from indexes.words import match_any
from schemas.records import Passage

MAX_PASSAGES = 50_000  # of a folder: of a larger one no table is read
MAX_NAME_WORDS = 6  # of a column
MAX_ROW_CHARACTERS = 500  # a longer one may have been cut in two
_CELL = re.compile(r"(?P<name>[^:;]{1,60}): (?P<value>\S.*)", re.DOTALL)
_TOTAL = re.compile(rf"(?:{match_any('table_words.totals')})\b", re.IGNORECASE)
_NAMELESS_SHEET = re.compile(rf"(?:{match_any('table_words.sheets')})\s*\d*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    text: str  # as it stands in its passage
    passage: Passage
    cells: Mapping[str, str]  # by the names of their columns; empty ones are not there


class Column:
    """A column with a cell for each row, empty where the row has none. Rows are told by their numbers, from 0."""

    def __init__(self, name: str, cells: Sequence[str]) -> None:
        self.name, self.cells = name, cells
        self.keys = [split_words(cell) for cell in cells]  # the stems of each cell
        self.numbers, self.dates = read_numbers(cells), read_dates(cells)
        self.stems = frozenset(split_words(name))
        # Those of its name without its unit and what stands in brackets.
        self.short_name = drop_generic(split_words(re.sub(r"\([^)]*\)", "", name)) or split_words(name))
        self.plain_name = re.sub(r"\([^)]*\)", "", name).strip() or name
        self.units = [word for word in re.findall(r"[^\s()_]+", name) if word.casefold() in UNIT]  # in its name
        self.filled = [row for row, cell in enumerate(cells) if cell]
        said = {cell.casefold().strip(" .") for cell in cells}
        self.tells_yes_from_no = bool(said & (YES | NO)) and said <= YES | NO | {""}
        # What its name says of it, as in the section `columns` of the words, and what its cells do.
        named = (role for role, words in ROLES.items() if self.stems & words)
        self.kinds = frozenset((*named, *self._classify_cells()))

    def _classify_cells(self) -> Iterable[str]:
        numbers, said = self.read_numbers(self.filled), {cell.casefold().strip(" .") for cell in self.cells}
        is_named = {role: bool(self.stems & ROLES[role]) for role in ("money", "own_dates", "quantity", "people")}
        if numbers and (is_named["money"] or numbers[0].unit in CURRENCIES):
            yield "amounts of money"
        if said <= YES | NO | {""} or ("" in said and NO.isdisjoint(said) and not any(self.numbers)):
            yield "yes or no"  # or when or by whom something was done
        elif is_named["quantity"]:
            yield "quantities"
        if numbers and self.name.endswith("s") and not any(one.decimals or one.unit for one in numbers):
            yield "pieces"
        if self.read_dates(self.filled) and (is_named["own_dates"] or not "".join(self.cells).isdigit()):
            yield "dates"
        elif is_named["people"] and not numbers and not said <= YES | NO:
            yield "names of people"
        if not numbers and self.stems <= ROLES["units"]:
            yield "only units"
        if all(len(key) <= 3 and not ROLES["periods"].isdisjoint(key) for key in self.keys):
            yield "only periods"

    def read_numbers(self, rows: Iterable[int]) -> list[Number]:
        """The numbers of some rows; none where one is missing or no plain number, or where their units differ."""
        found = [self.numbers[row] for row in rows]
        numbers = [number for number in found if number]
        return numbers if len(numbers) == len(found) and len({number.unit for number in numbers}) == 1 else []

    def read_dates(self, rows: Iterable[int]) -> list[Date]:
        """The dates of some rows; none where one is missing or no plain date."""
        found = [self.dates[row] for row in rows]
        return [date for date in found if date] if all(found) else []

    def are_distinct(self, rows: Sequence[int] | None = None) -> bool:
        """Whether each of some rows, or of all, has another value."""
        values = [self.keys[row] for row in rows] if rows else self.keys
        return len(set(values)) == len(values) and () not in values

    def is_constant(self, rows: Iterable[int]) -> bool:
        """Whether some rows have the same value."""
        return len({self.cells[row].casefold() for row in rows}) == 1


@dataclass(frozen=True, eq=False)
class Table:
    """A table of a document."""

    name: str  # its own: the heading above it, or the file's name
    around: str  # the file's name and all headings
    rows: Sequence[Row]  # without totals
    totals: Sequence[Row] = ()
    is_doubtful: bool = False  # whether a row may be missing

    @cached_property
    def columns(self) -> list[Column]:
        """In the order in which rows name them."""
        names = dict.fromkeys(name for row in self.rows for name in row.cells)
        return [Column(name, [row.cells.get(name, "") for row in self.rows]) for name in names]

    @cached_property
    def header(self) -> str:
        """The names of the columns, in small letters."""
        return " ".join(column.name for column in self.columns).casefold()

    @cached_property
    def values(self) -> Mapping[tuple[str, ...], Sequence[Column]]:
        """The columns that have a value which is no number or date, by the stems of the value."""
        found: dict[tuple[str, ...], dict[Column, None]] = {}
        for column in self.columns:
            for key, number, date in zip(column.keys, column.numbers, column.dates, strict=True):
                if key and not number and not date:
                    found.setdefault(key, {})[column] = None
        return {key: tuple(columns) for key, columns in found.items()}

    @cached_property
    def date_column(self) -> Column | None:
        """The one column that dates the rows: the only one of dates, or the only one of them that is named so."""
        dated = [column for column in self.columns if "dates" in column.kinds]
        named = [column for column in dated if "own_dates" in column.kinds] or dated
        return named[0] if len(named) == 1 else None


@lru_cache(maxsize=1)  # of the folder that is asked
def list_tables(documents: WholeDocuments) -> tuple[Table, ...]:
    """All tables of a folder; none where it is very large."""
    if len(documents) > MAX_PASSAGES:
        return ()
    return tuple(table for name in documents.names for table in find_tables(name, documents.read(name)))


@dataclass(slots=True)
class _Lines:
    """The lines of one table, as far as they were read."""

    section: str  # the headings above it
    rows: list[Row] = field(default_factory=list)
    is_unclear: bool = False

    def goes_on(self, row: Row) -> bool:
        """Whether a row has columns of this table and stands below its headings."""
        if not self.rows or row.passage is self.rows[-1].passage:
            is_below = True
        else:
            is_below = row.passage.title.startswith(self.section) or self.section.startswith(row.passage.title)
        before = {name for each in self.rows for name in each.cells} or set(row.cells)
        return is_below and len(before & set(row.cells)) * 2 >= len(row.cells)


def find_tables(document: str, passages: Sequence[Passage]) -> list[Table]:
    """The tables of a document, given all its passages. A table has two rows at least."""
    lines = [(" ".join(line.split()), passage) for passage in passages for line in passage.text.split("\n")]
    names = _find_column_names([text for text, _ in lines])
    first_cell = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    row_start = re.compile(rf"(?:^|(?<=[:.)] ))(?:{first_cell}): ")
    found, current = list[_Lines](), None
    for text, passage in lines if names else ():
        match = row_start.search(text.partition("; ")[0])
        start = match.start() if match else 0
        row, heading = Row(text[start:], passage, _split_cells(text[start:], names)), text[:start].strip(" :")
        if len(row.cells) > 1 or (current and current.rows and list(row.cells) == list(current.rows[0].cells)[:1]):
            if heading or current is None or not current.goes_on(row):
                current = _Lines(": ".join(part for part in (passage.title, heading) if part))
                found.append(current)
            current.rows.append(row)
        elif any(map(row_start.match, text.split("; "))):  # it has cells, but is no row
            current = current or _Lines(passage.title)
            current.is_unclear = True
        else:
            current = None
    tables = [_build_table(document, lines) for lines in found]
    return [table for table in tables if len(table.rows) > 1]


def _find_column_names(lines: Sequence[str]) -> frozenset[str]:
    """What stands before a colon in two lines of several cells; in one, where all lines begin with the same."""
    counted: Counter[str] = Counter()
    for line in lines:
        parts = [*line.split("; "), line.partition(": ")[2]]  # the last: the first cell behind a heading
        found = [cell["name"].strip() for part in parts if (cell := _CELL.match(part))]
        counted.update({name for name in found if len(name.split()) <= MAX_NAME_WORDS} if len(found) > 1 else ())
    first = lines[0].partition(": ")[0]
    are_all_rows = first in counted and all(line.startswith(f"{first}: ") for line in lines)
    return frozenset(name for name, count in counted.items() if count > 1 or are_all_rows)


def _split_cells(text: str, names: frozenset[str]) -> dict[str, str]:
    """The cells of a row; a part without the name of a column belongs to the value before.

    There are none where the first has no name, or where a name is there twice.
    """
    cells: dict[str, str] = {}
    last = ""
    for part in text.removesuffix(".").split("; "):
        found = _CELL.match(part)
        if found and found["name"] in names:
            last = found["name"]
            if last in cells:
                return {}
            cells[last] = found["value"].strip()
        elif last:
            cells[last] += f"; {part}"
        else:
            return {}
    return cells


def _build_table(document: str, lines: _Lines) -> Table:
    """The table of some lines without the rows that sum up others, doubtful where one may be such a row or missing."""
    own, totals = list[Row](), list[Row]()
    for row in lines.rows:
        (totals if any(map(_TOTAL.match, row.cells.values())) else own).append(row)
    name = re.sub(r"\.\w+$", "", lines.section.rpartition(": ")[2])
    name = re.sub(r"\.\w+$", "", document.rpartition("/")[2]) if _NAMELESS_SHEET.fullmatch(name) else name
    label = Counter(next(iter(row.cells)) for row in own).most_common(1)
    unlabelled = [row for row in own if label[0][0] not in row.cells]
    is_doubtful = (
        lines.is_unclear
        or any(row.passage.title != lines.section for row in own if row.passage is not lines.rows[0].passage)
        or any(len(row.text) > MAX_ROW_CHARACTERS for row in own)
        or any(not re.search(r"[^\W\d_]{4}", "".join(row.cells.values())) for row in unlabelled)
    )
    return Table(name, f"{document}: {lines.section}", own, totals, is_doubtful)
