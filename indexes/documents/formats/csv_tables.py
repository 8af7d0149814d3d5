"""Tables of comma-separated values (.csv) as passages: each row is one, its values with the names of their columns."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, shorten_label
from indexes.documents.document_reader import DocumentReader, limit_notes, read_as_text
from indexes.documents.formats.block_building import format_row

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[-+]?\d")


@dataclass(frozen=True, slots=True)
class TableRow:
    first: int  # line of the file, or row of the sheet, from 1
    last: int
    values: Sequence[str]


def name_columns(rows: Iterable[TableRow]) -> Iterator[tuple[TableRow, Sequence[str]]]:
    """Each row with the names of the columns; no empty rows.

    The first row gives the names if they are all different, with no number but a year among them.
    """
    names: Sequence[str] | None = None
    for row in rows:
        if not any(value.strip() for value in row.values):
            continue
        if names is None:
            filled = [value.strip() for value in row.values if value.strip()]
            if len(set(filled)) == len(filled) and not any(map(_NUMBER.match, filled)):
                names = [shorten_label(value) for value in row.values]
                continue
            names = [f"column {column}" for column in range(1, len(row.values) + 1)]
        yield row, names


DELIMITERS = ",;\t|"
SAMPLE_CHARACTERS = 20_000  # characters that the delimiter is found in
MAX_VALUE_CHARACTERS = 10_000_000


def chunk_table(text: str, notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """No title, and the passages, whose places are lines. Oddities of rows are added to `notes`."""
    return "", (chunk for row in _read_rows(text, notes) for chunk in chunk_blocks([row]))


def _read_rows(text: str, notes: list[str]) -> Iterator[Block]:
    csv.field_size_limit(MAX_VALUE_CHARACTERS)
    reader = csv.reader(io.StringIO(text, newline=""), _detect_dialect(text))
    ragged: list[str] = []
    try:
        for row, names in name_columns(_number_rows(reader)):
            if len(row.values) != len(names):
                ragged.append(f"line {row.first} has {len(row.values)} values for {len(names)} columns")
            yield Block((Line(row.first, format_row(names, row.values)), Line(row.last, "")))
    except csv.Error as error:
        notes.append(f"line {reader.line_num}: {error}; nothing is read from there on")
    notes += limit_notes(ragged, "rows have more or fewer values than there are columns")


def _number_rows(reader: "CsvReader") -> Iterator[TableRow]:
    first = 1
    for values in reader:
        yield TableRow(first, reader.line_num, values)
        first = reader.line_num + 1


def _detect_dialect(text: str) -> type[csv.Dialect]:
    """How values are separated: by commas where nothing else can be found."""
    try:
        found = csv.Sniffer().sniff(text[:SAMPLE_CHARACTERS], DELIMITERS)
    except csv.Error:
        return csv.excel
    found.doublequote = True  # the sniffer finds doubled quotes only if the sample has some
    return found


CSV_TABLES = DocumentReader((".csv",), read_as_text(chunk_table), is_data=True)
