"""Tables of comma-separated values (.csv) as passages: each row is one, its values with the names of their columns."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from indexes.documents.block_building import format_row
from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks
from indexes.documents.document_reader import DocumentReader, RepeatedNote, read_as_text
from indexes.text.segmentation import SentenceSplitter

DELIMITERS = ",;\t|"
SAMPLE_CHARACTERS = 20_000  # characters that the delimiter is found in
MAX_VALUE_CHARACTERS = 10_000_000
_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[-+]?\d")


def chunk_table(text: str, split: SentenceSplitter, notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """No title, and the passages, whose places are lines. Oddities of rows are added to `notes`."""
    return "", (chunk for row in _read_rows(text, notes) for chunk in chunk_blocks([row], split))


def _read_rows(text: str, notes: list[str]) -> Iterator[Block]:
    csv.field_size_limit(MAX_VALUE_CHARACTERS)
    reader = csv.reader(io.StringIO(text, newline=""), _detect_dialect(text))
    names: list[str] | None = None
    first = 1
    ragged = RepeatedNote(notes, "rows have more or fewer values than there are columns")
    try:
        for row in reader:
            number, first = first, reader.line_num + 1
            if not any(value.strip() for value in row):
                continue
            if names is None:
                names = row if _is_header(row) else [f"column {column}" for column in range(1, len(row) + 1)]
                if names is row:
                    continue
            if len(row) != len(names):
                ragged.add(f"line {number} has {len(row)} values for {len(names)} columns")
            yield Block((Line(number, format_row(names, row)), Line(reader.line_num, "")))
    except csv.Error as error:
        notes.append(f"line {reader.line_num}: {error}; nothing is read from there on")
    ragged.add_rest()


def _detect_dialect(text: str) -> type[csv.Dialect]:
    """How values are separated: by commas where nothing else can be found."""
    try:
        found = csv.Sniffer().sniff(text[:SAMPLE_CHARACTERS], DELIMITERS)
    except csv.Error:
        return csv.excel
    found.doublequote = True  # the sniffer finds doubled quotes only if the sample has some
    return found


def _is_header(row: Sequence[str]) -> bool:
    """Whether these may be names of columns: all different, and no number but a year among them."""
    names = [value.strip() for value in row if value.strip()]
    return len(set(names)) == len(names) and not any(_NUMBER.match(name) for name in names)


READER = DocumentReader((".csv",), read_as_text(chunk_table), is_data=True)
