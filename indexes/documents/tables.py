"""Tables of comma-separated values: a row is a passage, its values with the names of their columns."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from indexes.documents.chunking import Block, Line
from indexes.documents.text_and_markdown import format_row

DELIMITERS = ",;\t|"
SAMPLE_CHARACTERS = 20_000  # characters that the delimiter is found in
FIELD = 10_000_000  # characters of a value
NOTES = 5  # ragged rows that are told one by one
_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[-+]?\d")


def read_table_rows(text: str, notes: list[str]) -> Iterator[Block]:
    """A block a row. What is odd about rows is added to `notes`."""
    csv.field_size_limit(FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), _detect_dialect(text))
    names: list[str] | None = None
    first, ragged = 1, 0
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
                ragged += 1
                notes += [f"line {number} has {len(row)} values for {len(names)} columns"] if ragged <= NOTES else []
            yield Block((Line(number, format_row(names, row)), Line(reader.line_num, "")))
    except csv.Error as error:
        notes.append(f"line {reader.line_num}: {error}; nothing is read from there on")
    if ragged > NOTES:
        notes.append(f"{ragged - NOTES} further rows have more or fewer values than there are columns")


def _detect_dialect(text: str) -> type[csv.Dialect]:
    """How values are told apart: the comma where nothing else can be seen."""
    try:
        found = csv.Sniffer().sniff(text[:SAMPLE_CHARACTERS], DELIMITERS)
    except csv.Error:
        return csv.excel
    found.doublequote = True  # the sniffer sees only quotes that are doubled in what it looks at
    return found


def _is_header(row: Sequence[str]) -> bool:
    """Names of columns are different words; a number is none, unless it is a year."""
    names = [value.strip() for value in row if value.strip()]
    return len(set(names)) == len(names) and not any(_NUMBER.match(name) for name in names)
