"""OpenDocument sheets (.ods) as passages. Of a formula the value is read that was saved with it."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.libraries import explain_faults
from indexes.documents.office.archives import MAX_ARCHIVE_BYTES
from indexes.documents.office.open_document import (
    CELL,
    OFFICE,
    ROW,
    TABLE,
    count_repeats,
    find_outermost,
    open_content,
    read_paragraphs,
)
from indexes.documents.office.sheets import MAX_COLUMNS, MAX_ROWS, Sheet, chunk_sheets, format_number
from indexes.documents.table_rows import TableRow
from indexes.text.segmentation import SentenceSplitter

KIND = "OpenDocument spreadsheet"
CURRENCY_DECIMALS = 2
MIDNIGHT = " 00:00:00"
_CELLS = (CELL, f"{TABLE}covered-table-cell")


def chunk_ods(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The passages of a workbook, whose places are rows of sheets. Raises what `open_content` raises."""
    _, _, body = open_content(data, KIND, "spreadsheet")
    with explain_faults(KIND):
        tables = find_outermost(body, (f"{TABLE}table",))
        return chunk_sheets((Sheet(table.get(f"{TABLE}name") or "", _read_rows(table)) for table in tables), split)


def _read_rows(table: Any) -> Iterator[TableRow]:
    """The rows; one that is repeated counts as often, and an empty one is given once."""
    number = 1
    for row in find_outermost(table, (ROW,)):
        values, times = list(islice(_read_cells(row), MAX_COLUMNS)), count_repeats(row, "rows")
        for further in range(min(times, MAX_ROWS + 1) if any(values) else 1):
            yield TableRow(number + further, number + further, values)
        number += times


def _read_cells(row: Any) -> Iterator[str]:
    for cell in (found for found in row if found.tag in _CELLS):
        value = _format_cell(cell)
        for _ in range(min(count_repeats(cell, "columns"), MAX_COLUMNS)):
            yield value


def _format_cell(cell: Any) -> str:
    """A value as plain as in .csv: of a number the digits, of a date year, month and day; else what is shown."""
    kind, value = cell.get(f"{OFFICE}value-type"), cell.get(f"{OFFICE}value", "")
    if kind == "float":
        return format_number(float(value))
    if kind == "currency":
        return f"{format_number(float(value), CURRENCY_DECIMALS)} {cell.get(f'{OFFICE}currency', '')}".strip()
    if kind == "percentage":
        return f"{format_number(round(100 * float(value), 10))}%"
    if kind == "date":
        return str(cell.get(f"{OFFICE}date-value", "")).replace("T", " ").removesuffix(MIDNIGHT)
    if kind == "boolean":
        return "yes" if cell.get(f"{OFFICE}boolean-value") == "true" else "no"
    return " ".join(read_paragraphs(cell))


READER = DocumentReader((".ods",), chunk_ods, max_bytes=MAX_ARCHIVE_BYTES, is_data=True)
