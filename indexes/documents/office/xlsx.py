"""Excel workbooks (.xlsx) as passages. Of a formula the value is read that was saved with it; nothing is computed."""

import datetime
import re
from collections.abc import Iterator
from typing import Any

from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.libraries import explain_faults, load_library
from indexes.documents.office.archives import MAX_ARCHIVE_BYTES, Archive
from indexes.documents.office.sheets import MAX_ROWS, Sheet, chunk_sheets, format_number
from indexes.documents.table_rows import TableRow
from indexes.text.segmentation import SentenceSplitter

KIND = "Excel workbook"
_IN_BRACKETS = re.compile(r"\[\$?([^\]-]*)[^\]]*\]")  # of a format: "[$€-407]" is a currency, "[$-407]" a language
_CURRENCY = re.compile(r"[€$£¥]|\b[A-Z]{3}\b")
_DECIMALS = re.compile(r"0\.(0+)")


def chunk_xlsx(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The passages of a workbook, whose places are rows of sheets. Raises what `Archive` raises."""
    archive = Archive(data, KIND)
    openpyxl = load_library("openpyxl")
    with explain_faults(KIND):
        book = openpyxl.load_workbook(archive.repack(), read_only=True, data_only=True, keep_links=False)
        return chunk_sheets((Sheet(sheet.title, _read_rows(sheet)) for sheet in book.worksheets), split)


def _read_rows(sheet: Any) -> Iterator[TableRow]:
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


READER = DocumentReader((".xlsx",), chunk_xlsx, max_bytes=MAX_ARCHIVE_BYTES, is_data=True)
