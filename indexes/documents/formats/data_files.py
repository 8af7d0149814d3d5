"""Data as passages: rows of tables (.csv), lines of JSON (.jsonl), and JSON (.json).

Each row or line is a passage. In JSON each item of a list of objects is one, and the other values of an object are one
together. A value is written with its column, or with its path below the passage's own: `name: Trowel; maker.city:
Harnby; colours: red, green.`
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any

from indexes.documents.chunking import MAX_WORDS, Block, Chunk, Line, chunk_blocks, format_row, shorten_label
from indexes.documents.document_reader import limit_notes
from schemas.errors import InvalidInputError

_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[-+]?\d")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class TableRow:
    first: int  # line of the file, or row of the sheet, from 1
    last: int
    values: Sequence[str]


def name_columns(rows: Iterable[TableRow]) -> Iterator[tuple[TableRow, Sequence[str]]]:
    """Each row with the names of the columns; no empty rows.

    The first row gives the names if they are all different, with no number but a year among them, or one that is not
    what the next row has below it. A title above it, one value alone, has no name.
    """
    names: Sequence[str] | None = None
    filled_rows = (row for row in rows if any(value.strip() for value in row.values))
    for row, following in pairwise(chain(filled_rows, [None])):
        assert row
        if names is None:
            filled = [value.strip() for value in row.values if value.strip()]
            if len(filled) == 1 and following and sum(bool(value.strip()) for value in following.values) > 1:
                yield row, [""] * len(row.values)
                continue
            if len(set(filled)) == len(filled) and _gives_names(row, following):
                names = [shorten_label(value) for value in row.values]
                continue
            names = [f"column {column}" for column in range(1, len(row.values) + 1)]
        yield row, names


def _gives_names(row: TableRow, below: TableRow | None) -> bool:
    """Whether a row has no numbers, or others than the row below, which has more: `250 g` over `£12.50`."""
    numbered = [value for value in row.values if _NUMBER.match(value.strip())]
    if not numbered:
        return True
    pairs = [
        (own.strip(), other.strip()) for own, other in zip(row.values, below.values if below else (), strict=False)
    ]
    adds_numbers = any(own and not _NUMBER.match(own) and _NUMBER.match(other) for own, other in pairs)
    return adds_numbers and all(_FIGURE.sub("", a) != _FIGURE.sub("", b) for a, b in pairs if _NUMBER.match(a))


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


def _number_rows(reader: Any) -> Iterator[TableRow]:
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


_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def chunk_json(text: str, _notes: list[str]) -> tuple[str, list[Chunk]]:
    """No title, and the passages of a JSON file. Places are paths: `items[3]`, `owner.address`, `$` for the whole."""
    try:
        return "", list(_chunk_below(json.loads(text), ""))
    except RecursionError as error:
        raise InvalidInputError("is JSON that is nested too deeply") from error
    except ValueError as error:
        raise InvalidInputError(f"is broken JSON ({error})") from error


def describe_value(value: Any) -> str:
    """A JSON value as a line of text: its plain values, each with its path."""
    leaves = list(_list_leaves(value, ""))
    return format_row([path for path, _ in leaves], [text for _, text in leaves])


def _chunk_below(value: Any, path: str) -> Iterator[Chunk]:
    """An object that is an item of a list, or holds no list of objects, is one passage if it is short enough."""
    if _is_list_of_objects(value):
        for number, item in enumerate(value):
            yield from _chunk_below(item, f"{path}[{number}]")
    elif isinstance(value, dict):
        inner = _find_separate_keys(value, path)
        yield from _chunk_value({key: held for key, held in value.items() if key not in inner}, path)
        for key in inner:
            yield from _chunk_below(value[key], _join_path(path, key))
    else:
        yield from _chunk_value(value, path)


def _find_separate_keys(value: dict[str, Any], path: str) -> list[str]:
    """The keys of an object whose values become passages of their own."""
    words = (word for leaf in _list_leaves(value, "") for word in " ".join(leaf).split())
    fits = next(islice(words, MAX_WORDS, None), None) is None  # of a large one only the beginning is looked at
    if fits and path.endswith("]"):
        return []
    return [key for key, held in value.items() if _contains_objects(held) or (isinstance(held, dict) and not fits)]


def _chunk_value(value: Any, path: str) -> Iterator[Chunk]:
    heading = re.sub(r"\[\d+\]", "", path).strip(".")
    return chunk_blocks([Block((Line(1, describe_value(value)),), (heading,) if heading else ())], path or "$")


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def _contains_objects(value: Any) -> bool:
    """Whether this is a list of objects, or an object with one somewhere in it."""
    return _is_list_of_objects(value) or (isinstance(value, dict) and any(map(_contains_objects, value.values())))


def _list_leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The plain values in a value, with their paths; a list of plain values counts as one."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _list_leaves(held, _join_path(path, key))
    elif _is_list_of_objects(value):
        for number, item in enumerate(value):
            yield from _list_leaves(item, f"{path}[{number}]")
    elif text := ", ".join(map(_format_scalar, value)) if isinstance(value, list) else _format_scalar(value):
        yield path, text


def _format_scalar(value: Any) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    return json.dumps(value)


def _join_path(path: str, key: str) -> str:
    """A key's path. A key that is no plain word is quoted, with its colons escaped: ids are split at colons."""
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False).replace(':', chr(92) + 'u003a')}]"
    return f"{path}.{key}" if path else key


def chunk_json_lines(text: str, notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """No title, and the passages, whose places are line numbers. Broken lines are added to `notes`."""
    return "", (chunk for block in _read_lines(text, notes) for chunk in chunk_blocks([block]))


def _read_lines(text: str, notes: list[str]) -> Iterator[Block]:
    broken: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            yield Block((Line(number, describe_value(json.loads(line)) if line.strip() else ""),))
        except (ValueError, RecursionError) as error:
            broken.append(f"line {number} is broken JSON ({error})")
    notes += limit_notes(broken, "lines are broken JSON")
