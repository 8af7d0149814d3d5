"""JSON as passages: an item of a list of objects is one, and so are the other values of an object together.

A value stands with its path below the passage's own: `name: Trowel; maker.city: Harnby; colours: red, green.`
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from indexes.documents.cutting import MOST, Block, Line, Part, parts, sentence
from indexes.segments import Split
from schemas.errors import InvalidInputError

ROOT = "$"
NOTES = 5  # broken lines that are told one by one
_PLAIN = re.compile(r"[^\W\d][\w-]*")


def tree_parts(text: str, split: Split) -> list[Part]:
    """The passages of a JSON file, their places paths: `items[3]`, `owner.address`, `$` for the whole."""
    try:
        return list(_walk(json.loads(text), "", split))
    except RecursionError as error:
        raise InvalidInputError("is JSON that is nested too deeply") from error
    except ValueError as error:
        raise InvalidInputError(f"is broken JSON ({error})") from error


def line_parts(text: str, split: Split, notes: list[str]) -> Iterator[Part]:
    """The passages of JSON lines: a line is one. Broken lines are added to `notes`."""
    broken = 0
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            told = _told(json.loads(line)) if line.strip() else ""
        except (ValueError, RecursionError) as error:
            broken += 1
            notes += [f"line {number} is broken JSON ({error})"] if broken <= NOTES else []
        else:
            yield from parts([Block((Line(number, told),))], split)
    if broken > NOTES:
        notes.append(f"{broken - NOTES} further lines are broken JSON")


def _walk(value: Any, path: str, split: Split) -> Iterator[Part]:
    """An object that is an item of a list, or holds no such list, is one passage if it is short enough."""
    if _of_objects(value):
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}[{number}]", split)
        return
    if isinstance(value, dict):
        fits = len(_told(value).split()) <= MOST
        whole = fits and path.endswith("]")
        inner = [key for key, held in value.items() if not whole and (_holds_objects(held) if fits else _nests(held))]
        yield from _placed({key: held for key, held in value.items() if key not in inner}, path, split)
        for key in inner:
            yield from _walk(value[key], _below(path, key), split)
        return
    yield from _placed(value, path, split)


def _placed(value: Any, path: str, split: Split) -> Iterator[Part]:
    above = re.sub(r"\[\d+\]", "", path).strip(".")
    for part in parts([Block((Line(1, _told(value)),))], split):
        yield Part(path or ROOT, part.text, (above,) if above else ())


def _nests(value: Any) -> bool:
    return isinstance(value, dict) or _of_objects(value)


def _of_objects(value: Any) -> bool:
    """Whether it is a list of more than plain values."""
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def _holds_objects(value: Any) -> bool:
    return _of_objects(value) or (isinstance(value, dict) and any(map(_holds_objects, value.values())))


def _told(value: Any) -> str:
    return sentence("; ".join(f"{path}: {text}" if path else text for path, text in _leaves(value, "")))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """All that an object says, with the paths; a list of plain values is one."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _leaves(held, _below(path, key))
    elif _of_objects(value):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    elif text := ", ".join(map(_plain, value)) if isinstance(value, list) else _plain(value):
        yield path, text


def _plain(value: Any) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    return json.dumps(value)


def _below(path: str, key: str) -> str:
    """A key's path; a key that is no plain word is quoted, without the colon that ids are split at."""
    if not _PLAIN.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False).replace(':', chr(92) + 'u003a')}]"
    return f"{path}.{key}" if path else key
