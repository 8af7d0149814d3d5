"""Rows of tables of values with the names of their columns, in the same way from .csv and from sheets."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from indexes.documents.chunking import shorten_label

_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[-+]?\d")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table."""

    first: int  # line of the file, or row of the sheet, from 1
    last: int
    values: Sequence[str]


def name_columns(rows: Iterable[TableRow]) -> Iterator[tuple[TableRow, Sequence[str]]]:
    """Each row with the names of the columns, which the first row gives or else their numbers; no empty rows."""
    names: Sequence[str] | None = None
    for row in rows:
        if not any(value.strip() for value in row.values):
            continue
        if names is None:
            if _is_header(row.values):
                names = [shorten_label(value) for value in row.values]
                continue
            names = [f"column {column}" for column in range(1, len(row.values) + 1)]
        yield row, names


def _is_header(row: Sequence[str]) -> bool:
    """Whether these may be names of columns: all different, and no number but a year among them."""
    names = [value.strip() for value in row if value.strip()]
    return len(set(names)) == len(names) and not any(_NUMBER.match(name) for name in names)
