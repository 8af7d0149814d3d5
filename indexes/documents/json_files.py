"""JSON as passages: an item of a list of objects is one, and so are the other values of an object together.

A value stands with its path below the passage's own: `name: Trowel; maker.city: Harnby; colours: red, green.`
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from indexes.documents.chunking import MAX_WORDS, Block, Chunk, Line, chunk_blocks, end_with_full_stop
from indexes.text.segmentation import SentenceSplitter
from schemas.errors import InvalidInputError

ROOT = "$"
NOTES = 5  # broken lines that are told one by one
_PLAIN = re.compile(r"[^\W\d][\w-]*")


def chunk_json(text: str, split: SentenceSplitter) -> list[Chunk]:
    """The passages of a JSON file, their places paths: `items[3]`, `owner.address`, `$` for the whole."""
    try:
        return list(_walk(json.loads(text), "", split))
    except RecursionError as error:
        raise InvalidInputError("is JSON that is nested too deeply") from error
    except ValueError as error:
        raise InvalidInputError(f"is broken JSON ({error})") from error


def chunk_json_lines(text: str, split: SentenceSplitter, notes: list[str]) -> Iterator[Chunk]:
    """The passages of JSON lines: a line is one. Broken lines are added to `notes`."""
    broken = 0
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            told = _describe_value(json.loads(line)) if line.strip() else ""
        except (ValueError, RecursionError) as error:
            broken += 1
            notes += [f"line {number} is broken JSON ({error})"] if broken <= NOTES else []
        else:
            yield from chunk_blocks([Block((Line(number, told),))], split)
    if broken > NOTES:
        notes.append(f"{broken - NOTES} further lines are broken JSON")


def _walk(value: Any, path: str, split: SentenceSplitter) -> Iterator[Chunk]:
    """An object that is an item of a list, or holds no such list, is one passage if it is short enough."""
    if _is_list_of_objects(value):
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}[{number}]", split)
        return
    if isinstance(value, dict):
        fits = len(_describe_value(value).split()) <= MAX_WORDS
        whole = fits and path.endswith("]")
        inner = [
            key for key, held in value.items() if not whole and (_holds_objects(held) if fits else _is_nested(held))
        ]
        yield from _chunk_value({key: held for key, held in value.items() if key not in inner}, path, split)
        for key in inner:
            yield from _walk(value[key], _join_path(path, key), split)
        return
    yield from _chunk_value(value, path, split)


def _chunk_value(value: Any, path: str, split: SentenceSplitter) -> Iterator[Chunk]:
    above = re.sub(r"\[\d+\]", "", path).strip(".")
    for part in chunk_blocks([Block((Line(1, _describe_value(value)),))], split):
        yield Chunk(path or ROOT, part.text, (above,) if above else ())


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or _is_list_of_objects(value)


def _is_list_of_objects(value: Any) -> bool:
    """Whether it is a list of more than plain values."""
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def _holds_objects(value: Any) -> bool:
    return _is_list_of_objects(value) or (isinstance(value, dict) and any(map(_holds_objects, value.values())))


def _describe_value(value: Any) -> str:
    return end_with_full_stop("; ".join(f"{path}: {text}" if path else text for path, text in _leaves(value, "")))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """All that an object says, with the paths; a list of plain values is one."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _leaves(held, _join_path(path, key))
    elif _is_list_of_objects(value):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    elif text := ", ".join(map(_format_scalar, value)) if isinstance(value, list) else _format_scalar(value):
        yield path, text


def _format_scalar(value: Any) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    return json.dumps(value)


def _join_path(path: str, key: str) -> str:
    """A key's path; a key that is no plain word is quoted, without the colon that ids are split at."""
    if not _PLAIN.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False).replace(':', chr(92) + 'u003a')}]"
    return f"{path}.{key}" if path else key
