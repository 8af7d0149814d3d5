"""Tables with all their rows and typed columns, read from the passages of a whole document.

The readers of documents write a row as a line, `name: value; name: value.`, without empty values. A line belongs to the
table above it where it has its columns. Where it is not sure that all rows were found, the table is doubtful.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import chain

from indexes.documents.collection import WholeDocuments
from indexes.documents.tables.cells import (
    NO,
    STOP_STEMS,
    UNIT,
    YES,
    Number,
    read_dates,
    read_numbers,
    read_period,
    split_words,
)
from indexes.words import match_any
from schemas.records import Passage

MAX_PASSAGES = 50_000  # of a folder: of a larger one no table is read
MAX_NAME_WORDS = 6  # of a column
MAX_ROW_CHARACTERS = 500  # a longer one may have been cut in two
_CELL = re.compile(r"(?P<name>[^:;]{1,60}): (?P<value>\S.*)", re.DOTALL)
_TIME = re.compile(r"(?:(\d+):)?(\d+):(\d\d)(?: ?h)?")
_PER = re.compile(r"\b(?:per|pro|je)[\s_]\w+", re.IGNORECASE)  # of "price per kg", which is no weight
_TOTAL = re.compile(rf"(?:{match_any('table_words.totals')})[:.]?(?: \d{{4}})?", re.IGNORECASE)
_NAMELESS_SHEET = re.compile(rf"(?:{match_any('table_words.sheets')})\s*\d*", re.IGNORECASE)


Measure = tuple[int, ...] | tuple[Decimal]


def _split_unit(unit: str) -> tuple[str, Decimal]:
    """Of what kind a unit is, and how many of the first of its kind it has: "gram 1000"."""
    kind, _, size = unit.rpartition(" ")
    return (kind, Decimal(size)) if kind and re.fullmatch(r"[\d.]+", size) else (unit, Decimal(1))


@dataclass(frozen=True, slots=True)
class Row:
    text: str  # as it stands in its passage
    passage: Passage
    cells: Mapping[str, str]  # by the names of their columns; empty ones are not there


class Column:
    """A column with a cell for each row, empty where the row has none. Rows are told by their numbers, from 0."""

    def __init__(self, name: str, cells: Sequence[str]) -> None:
        self.name, self.cells = name, cells
        self.numbers, self.dates = read_numbers(cells), read_dates(cells)
        self.plain_name = re.sub(r"\([^)]*\)", "", name).strip() or name  # without what stands in brackets
        measured = _PER.sub("", name)
        self.units = [word for word in re.findall(r"[^\s()_]+", measured) if word.casefold() in UNIT]  # in its name
        self.filled = [row for row, cell in enumerate(cells) if cell]
        said = {cell.casefold().strip(" .") for cell in cells}
        self.tells_yes_from_no = bool(said & (YES | NO)) and said <= YES | NO | {""}

    @cached_property
    def is_dated(self) -> bool:
        """Whether all its cells are dates, and not all mere years, which are numbers as well."""
        return bool(self.filled) and all(self.dates[row] for row in self.filled) and not "".join(self.cells).isdigit()

    @cached_property
    def held_units(self) -> set[str]:
        """Those of its numbers; "" of one without."""
        return {number.unit for number in self.numbers if number}

    @cached_property
    def has_times(self) -> bool:
        """Whether most of its cells are times of a clock or race."""
        return sum(bool(_TIME.fullmatch(cell)) for cell in self.cells) * 2 > len(self.filled)

    @cached_property
    def measures(self) -> list[Measure | None]:
        """What each cell is compared by; None where it cannot be, and for all numbers whose units cannot."""
        found = self.measure(self.cells)
        kinds = {_split_unit(unit)[0] for unit in self.held_units}
        return found if self.has_times or self.is_dated or len(kinds) < 2 else [None] * len(found)

    def measure(self, cells: Sequence[str]) -> list[Measure | None]:
        """What cells like its own are compared by: a time, a date, a number in the first unit of its group."""
        if self.has_times:
            times = [_TIME.fullmatch(cell) for cell in cells]
            return [(int(t[1] or 0) * 3600 + int(t[2]) * 60 + int(t[3]),) if t else None for t in times]
        if self.is_dated:
            return [read_period(cell) for cell in cells] if cells is not self.cells else list(self.dates)
        numbers = read_numbers(cells) if cells is not self.cells else self.numbers
        return [(number.value * self._size_of(number),) if number else None for number in numbers]

    def _size_of(self, number: Number) -> Decimal:
        """How large the unit of a number is; without one it has that of the column, where all cells have the same."""
        unit = number.unit if number.unit or len(self.held_units) > 1 else next(iter(self.held_units), "")
        return _split_unit(unit)[1]

    def read_numbers(self, rows: Iterable[int]) -> list[Number]:
        """The numbers of some rows; none where one is missing or no plain number, or where their units differ."""
        found = [self.numbers[row] for row in rows]
        numbers = [number for number in found if number]
        return numbers if len(numbers) == len(found) and len({number.unit for number in numbers}) == 1 else []

    def are_distinct(self) -> bool:
        """Whether each row has another value."""
        values = {cell.casefold() for cell in self.cells}
        return len(values) == len(self.cells) and "" not in values


@dataclass(frozen=True, eq=False)
class Table:
    name: str  # its own: the heading above it, or the file's name
    around: str  # the file's name and all headings
    rows: Sequence[Row]  # without totals
    is_doubtful: bool = False  # whether a row may be missing

    @cached_property
    def columns(self) -> list[Column]:
        """In the order in which rows name them."""
        names = dict.fromkeys(name for row in self.rows for name in row.cells)
        return [Column(name, [row.cells.get(name, "") for row in self.rows]) for name in names]

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of its name, its columns, and its values, without stop words."""
        cells = chain.from_iterable(row.cells.values() for row in self.rows)
        return frozenset(split_words(" ".join((self.name, self.header, *cells)))) - STOP_STEMS

    @cached_property
    def header(self) -> str:
        """The names of the columns, in small letters."""
        return " ".join(column.name for column in self.columns).casefold()


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
    parts = Counter((table.around, table.header) for table in tables)  # two of one table, where a row was cut
    cut = [replace(one, is_doubtful=True) if parts[one.around, one.header] > 1 else one for one in tables]
    return [table for table in cut if len(table.rows) > 1]


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
    own = [row for row in lines.rows if not any(map(_TOTAL.fullmatch, row.cells.values()))]
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
    return Table(name, f"{document}: {lines.section}", own, is_doubtful)
