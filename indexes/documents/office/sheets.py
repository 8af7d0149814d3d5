"""Sheets of tables as passages: each row is one, as in .csv files. A place is a sheet and a row: `Food!12`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from indexes.documents.block_building import format_row
from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks
from indexes.documents.document_reader import ChunkedDocument
from indexes.documents.passage_ids import escape_place
from indexes.documents.table_rows import TableRow, name_columns
from indexes.text.segmentation import SentenceSplitter

MAX_ROWS, MAX_CHARACTERS = 100_000, 50_000_000  # of a file, over all its sheets; the rest is left out
MAX_COLUMNS = 1_000  # of a row; the rest is left out
MAX_CAPTIONS = 5


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet."""

    name: str
    rows: Iterable[TableRow]  # with the numbers that they have in the sheet


def chunk_sheets(sheets: Iterable[Sheet], split: SentenceSplitter) -> ChunkedDocument:
    """The passages of all sheets, without a title."""
    chunks: list[Chunk] = []
    rows = characters = 0
    for chunk in (chunk for sheet in sheets for row in _read_blocks(sheet) for chunk in _chunk_row(sheet, row, split)):
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


def _chunk_row(sheet: Sheet, row: Block, split: SentenceSplitter) -> Iterator[Chunk]:
    place = f"{escape_place(sheet.name)}!{row.lines[0].number}"
    return (Chunk(place, chunk.text, chunk.headings) for chunk in chunk_blocks([row], split))


def _read_blocks(sheet: Sheet) -> Iterator[Block]:
    """Each row as a block; above it are the sheet's name and what stands alone above the table."""
    rows = (_cut_row(row) for row in sheet.rows)
    captions, first = _read_captions(rows)
    headings = (sheet.name, *captions)
    for row, names in name_columns(chain(first, rows)):
        yield Block((Line(row.first, format_row(names, row.values)),), headings)


def _cut_row(row: TableRow) -> TableRow:
    """The row without empty values at its end, and not too long."""
    values = [*row.values[:MAX_COLUMNS]]
    while values and not values[-1].strip():
        values.pop()
    return TableRow(row.first, row.last, values)


def _read_captions(rows: Iterator[TableRow]) -> tuple[list[str], Sequence[TableRow]]:
    """The single values above a table of several columns, and the rows taken so far that belong to the table."""
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
