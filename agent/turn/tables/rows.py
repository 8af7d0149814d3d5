"""Tables with all their rows, read from the passages of a whole document.

The readers of documents write a row as a line, `name: value; name: value.`, without empty values. A line belongs to the
table above it where it has its columns. Where it is not sure that all rows were found, the table is doubtful.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from indexes.documents.whole_documents import WholeDocuments
from schemas.records import Passage

MAX_PASSAGES = 50_000  # of a folder: of a larger one no table is read
MAX_NAME_WORDS = 6  # of a column
MAX_PREFIX_WORDS = 30  # of the headings that may stand before the first row, in its line
MAX_ROW_CHARACTERS = 500  # a longer one may have been cut in two
_CELL = re.compile(r"(?P<name>[^:;]{1,60}): (?P<value>\S.*)", re.DOTALL)
_NUMBERED = re.compile(r"(?P<place>.*:\d+)\.\d+")
_TOTAL = re.compile(
    r"(?:grand |sub-?|running )?(?:totals?|sum|average|mean|balance)\b|(?:zwischen)?summe\b|gesamt\b|insgesamt\b",
    re.IGNORECASE,
)
_NAMELESS_SHEET = re.compile(r"(?:(?:sheet|tabelle|blatt|feuil|hoja|foglio|blad)\s*\d*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    text: str  # as it stands in its passage
    passage: Passage
    cells: Mapping[str, str]  # by the names of their columns; empty ones are not there


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a document."""

    document: str
    name: str  # its own: the heading above it, or the file's name where the document is nothing else
    around: str  # the file's name and all headings
    columns: tuple[str, ...]
    rows: tuple[Row, ...]  # without totals
    totals: tuple[Row, ...] = ()
    is_doubtful: bool = False  # whether a row may be missing

    @property
    def language(self) -> str:
        """The language of its document."""
        return self.rows[0].passage.language


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a passage, and the row that it is, if any."""

    text: str
    passage: Passage
    row: Row | None = None
    prefix: str = ""  # headings in the same line before the row
    is_unclear: bool = False  # it has cells, but is no row


@lru_cache(maxsize=1)  # of the folder that is asked
def list_tables(documents: WholeDocuments) -> tuple[Table, ...]:
    """All tables of a folder; none where it is very large."""
    if len(documents) > MAX_PASSAGES:
        return ()
    return tuple(table for name in documents.names for table in find_tables(name, documents.read(name)))


def find_tables(document: str, passages: Sequence[Passage]) -> list[Table]:
    """The tables of a document, given all its passages. A table has two rows at least."""
    texts = [(" ".join(line.split()), passage) for passage in passages for line in passage.text.split("\n")]
    names = _find_column_names([text for text, _ in texts])
    if not names:
        return []
    cut = _find_cut(passages)
    is_whole = all(_begins_with_column(text, names) for text, _ in texts)
    lines = [_read_line(text, passage, names, is_whole=is_whole) for text, passage in texts]
    lines = [replace(line, row=None, is_unclear=True) if line.passage.id in cut else line for line in lines]
    tables = (_build_table(document, group, is_whole=is_whole) for group in _group_lines(lines))
    return [table for table in tables if len(table.rows) > 1]


def _find_cut(passages: Sequence[Passage]) -> set[str]:
    """The ids of passages that are parts of one line, numbered after the first: `people.csv:5`, `people.csv:5.2`."""
    ids = {passage.id for passage in passages}
    later = {id for id in ids if (found := _NUMBERED.fullmatch(id)) and found["place"] in ids}
    return later | {id[: id.rindex(".")] for id in later}


def _find_column_names(lines: Sequence[str]) -> frozenset[str]:
    """What stands before a colon in two lines of several cells; in one, where all lines begin with the same."""
    counted: Counter[str] = Counter()
    for line in lines:
        found = [cell["name"].strip() for part in line.split("; ") if (cell := _CELL.match(part))]
        behind_heading = _CELL.match(line.partition(": ")[2])
        found += [behind_heading["name"].strip()] if behind_heading else []
        short = [name for name in found if len(name.split()) <= MAX_NAME_WORDS]
        counted.update(set(short) if len(found) > 1 else ())
    first = lines[0].partition(": ")[0]
    are_all_rows = first in counted and all(line.startswith(f"{first}: ") for line in lines)
    return frozenset(name for name, count in counted.items() if count > 1 or are_all_rows)


def _begins_with_column(text: str, names: frozenset[str]) -> bool:
    found = _CELL.match(text)
    return bool(found and found["name"] in names)


def _read_line(text: str, passage: Passage, names: frozenset[str], *, is_whole: bool) -> _Line:
    """A line as a row where it begins with a cell, or with headings before the first one."""
    start = 0 if _begins_with_column(text, names) else _find_row_start(text, names)
    if start < 0:
        return _Line(text, passage, is_unclear=any(_begins_with_column(part, names) for part in text.split("; ")))
    cells = _split_cells(text[start:], names)
    if cells is None or (len(cells) < 2 and not is_whole):
        return _Line(text, passage, is_unclear=True)
    return _Line(text, passage, Row(text[start:], passage, cells), text[:start].strip(" :"))


def _find_row_start(text: str, names: frozenset[str]) -> int:
    """Where a row begins behind headings in the same line; -1 where none does."""
    choices = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    found = re.search(rf"(?<=[:.)] )(?:{choices}): ", text.partition("; ")[0])
    return found.start() if found and len(text[: found.start()].split()) <= MAX_PREFIX_WORDS else -1


def _split_cells(text: str, names: frozenset[str]) -> dict[str, str] | None:
    """The cells of a row; a part without the name of a column belongs to the value before. None where one is twice."""
    cells: dict[str, str] = {}
    last = ""
    for part in text.split("; "):
        found = _CELL.match(part)
        if found and found["name"] in names:
            last = found["name"]
            if last in cells:
                return None
            cells[last] = found["value"].strip()
        else:
            cells[last] += f"; {part}"
    cells[last] = cells[last].removesuffix(".")
    return cells


def _group_lines(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """The lines of one table each, with an unclear line that stands beside them."""
    group: list[_Line] = []
    for line in lines:
        if group and not _goes_on(group, line):
            yield group
            group = []
        if line.row or line.is_unclear:
            group.append(line)
    if group:
        yield group


def _goes_on(group: Sequence[_Line], line: _Line) -> bool:
    """Whether a line belongs to the table of the lines before it."""
    if line.row is None or line.prefix:
        return line.is_unclear and not line.prefix
    before = {name for each in group if each.row for name in each.row.cells}
    if before and len(before & set(line.row.cells)) * 2 < len(line.row.cells):
        return False
    section, own = _name_section(group[0]), line.passage.title
    return line.passage is group[-1].passage or section == own or own.startswith(section) or section.startswith(own)


def _name_section(line: _Line) -> str:
    return ": ".join(part for part in (line.passage.title, line.prefix) if part)


def _build_table(document: str, lines: Sequence[_Line], *, is_whole: bool) -> Table:
    rows = tuple(line.row for line in lines if line.row)
    first = lines[0]
    heading = first.prefix or first.passage.title.rpartition(": ")[2]
    file_name = re.sub(r"\.\w+$", "", document.rpartition("/")[2])
    sections = {_name_section(first), *(line.passage.title for line in lines if line.passage is not first.passage)}
    doubtful = any(line.is_unclear for line in lines) or len(sections) > 1
    doubtful = doubtful or any(len(row.text) > MAX_ROW_CHARACTERS for row in rows)
    around = f"{document}: {first.passage.title}: {first.prefix}"
    sheet = first.passage.title.partition(": ")[2]
    whole = file_name if _NAMELESS_SHEET.fullmatch(sheet) else sheet
    name = whole if is_whole else heading
    columns = tuple(dict.fromkeys(name for row in rows for name in row.cells))
    return _set_totals_apart(Table(document, name, around, columns, rows, is_doubtful=doubtful))


def _set_totals_apart(table: Table) -> Table:
    """The table without the rows that sum up others; doubtful where one looks like such a row and does not say so."""
    totals = tuple(row for row in table.rows if any(_TOTAL.match(cell) for cell in row.cells.values()))
    rows = tuple(row for row in table.rows if row not in totals)
    first = Counter(next(iter(row.cells)) for row in rows).most_common(1)
    without_label = [row for row in rows if first[0][0] not in row.cells]
    is_odd = any(not re.search(r"[^\W\d_]{4}", "".join(row.cells.values())) for row in without_label)
    return replace(table, rows=rows, totals=totals, is_doubtful=table.is_doubtful or is_odd)
