"""Sheets of tables as passages, and Excel workbooks (.xlsx): each row is a passage, at a place such as `Food!12`.

Of a formula the value is read that was saved with it; nothing is computed.
"""

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, escape_place, format_row
from indexes.documents.document_reader import ChunkedDocument, explain_faults, load_library
from indexes.documents.formats.data_files import TableRow, name_columns
from indexes.documents.office.archives import Archive

MAX_ROWS, MAX_CHARACTERS = 100_000, 50_000_000  # of a file, over all its sheets; the rest is left out
MAX_COLUMNS = 1_000  # of a row; the rest is left out
MAX_CAPTIONS = 5


def chunk_sheets(sheets: Iterable[tuple[str, Iterable[TableRow]]]) -> ChunkedDocument:
    """The passages of all sheets, given by their names and rows, without a title."""
    chunks: list[Chunk] = []
    rows = characters = 0
    for chunk in (chunk for name, table in sheets for chunk in _chunk_sheet(name, table)):
        rows, characters = rows + 1, characters + len(chunk.text)
        if rows > MAX_ROWS or characters > MAX_CHARACTERS:
            return ChunkedDocument(chunks=tuple(chunks), notes=(f"only its first {rows - 1:,} rows are read",))
        chunks.append(chunk)
    return ChunkedDocument(chunks=tuple(chunks))


def format_number(number: float, decimals: int | None = None) -> str:
    """A number as it is written: 3.0 is "3", and with two decimals "3.00"."""
    if decimals is not None:
        return f"{number:.{decimals}f}"
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else str(number)


def _chunk_sheet(sheet: str, all_rows: Iterable[TableRow]) -> Iterator[Chunk]:
    """The rows; above each are the sheet's name and what stands alone above the table."""
    rows = map(_cut_row, all_rows)
    captions, first = _read_captions(rows)
    for row, names in name_columns(chain(first, rows)):
        block = Block((Line(row.first, format_row(names, row.values)),), (sheet, *captions))
        yield from chunk_blocks([block], f"{escape_place(sheet)}!{row.first}")


def _cut_row(row: TableRow) -> TableRow:
    """The row without empty values at its end, and not too long."""
    values = [*row.values[:MAX_COLUMNS]]
    while values and not values[-1].strip():
        values.pop()
    return TableRow(row.first, row.last, values)


def _read_captions(rows: Iterator[TableRow]) -> tuple[list[str], Sequence[TableRow]]:
    taken: list[TableRow] = []
    for row in rows:
        filled = sum(bool(value.strip()) for value in row.values)
        if filled:
            taken.append(row)
        if filled > 1:
            return [" ".join("".join(caption.values).split()) for caption in taken[:-1]], taken[-1:]
        if len(taken) > MAX_CAPTIONS:
            break
    return [], taken


_IN_BRACKETS = re.compile(r"\[\$?([^\]-]*)[^\]]*\]")  # of a format: "[$€-407]" is a currency, "[$-407]" a language
_CURRENCY = re.compile(r"[€$£¥]|\b[A-Z]{3}\b")
_DECIMALS = re.compile(r"0\.(0+)")


@explain_faults("Excel workbook")
def chunk_xlsx(data: bytes) -> ChunkedDocument:
    """The passages of a workbook, whose places are rows of sheets. Raises what `Archive` raises."""
    archive, openpyxl = Archive(data, "Excel workbook"), load_library("openpyxl")
    book = openpyxl.load_workbook(archive.repack(), read_only=True, data_only=True, keep_links=False)
    return chunk_sheets((sheet.title, _read_sheet(sheet)) for sheet in book.worksheets)


def _read_sheet(sheet: Any) -> Iterator[TableRow]:
    sheet.reset_dimensions()  # what a file says of them may be wrong
    # A row may claim any number, and those before it count as empty: none is looked at after ten times the rows read.
    for number, row in enumerate(sheet.iter_rows(max_row=10 * MAX_ROWS), start=1):
        yield TableRow(number, number, [_format_cell(cell) for cell in row])


def _format_cell(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _format_amount(value, cell.number_format or "")
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ", "minutes")
    return str(value)


def _format_amount(value: float, shape: str) -> str:
    """A number with the decimals, the percent sign or the currency that its format gives it."""
    plain = _IN_BRACKETS.sub(r"\1", shape.partition(";")[0])
    decimals = len(found[1]) if (found := _DECIMALS.search(plain)) else None
    if "%" in plain:
        return f"{format_number(round(100 * value, 10), decimals)}%"
    currency = _CURRENCY.search(plain)
    return " ".join(filter(None, (format_number(value, decimals), currency and currency[0])))
