"""JSON of other people made into the wire types, which are strict: they are what we write.

What fits the type is decoded at once. Only what does not is looked at field by field: unknown fields are left out,
numbers given as text and ids given as numbers are converted, and fields that may be absent, or null, get the value that
their type names (`absent`). The types themselves say all that; whatever then still does not fit is an error.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Meta, inspect

from schemas.errors import InvalidInputError, format_count, list_with_limit
from schemas.records import Problem
from schemas.wire import Data, decode

log = logging.getLogger("convagent")
MAX_LISTED = 20
OddityKind = Literal["unknown field", "number as text", "id as number", "absent field", "no JSON"]


class Oddities:
    """The oddities of one file, in the order in which they first appear, each with its first place and its count."""

    def __init__(self) -> None:
        self._found: dict[tuple[OddityKind, str], tuple[str, int]] = {}

    def add(self, kind: OddityKind, what: str, where: str, count: int = 1) -> None:
        """Count one more of a kind. `where` is a JSON path or a line."""
        first, before = self._found.get((kind, what), (where, 0))
        self._found[kind, what] = first, before + count

    def list_problems(self, refused: Container[OddityKind] = ()) -> list[Problem]:
        """Each oddity at its first place: an error where its kind is refused, else a warning."""
        return [
            Problem(where, f"{what} ({count} times)" if count > 1 else what, "error" if kind in refused else "warning")
            for (kind, what), (where, count) in self._found.items()
        ]


def check_unique(names: Iterable[tuple[str, str]], problems: Sequence[Problem] = ()) -> None:
    """Raises `InvalidInputError` listing the names that stand more than once, with any other problems found."""
    if found := [*find_duplicates(names), *problems]:
        raise InvalidInputError("\n".join(map(str, found)))


def find_duplicates(names: Iterable[tuple[str, str]]) -> list[Problem]:
    """The names that stand more than once, each given with its kind, such as ("turn", "9-1_3")."""
    return [Problem(f"{kind} {name}", f"stands {n} times") for (kind, name), n in Counter(names).items() if n > 1]


@contextmanager
def locate_errors(path: Path) -> Iterator[None]:
    """Every `InvalidInputError` raised in the block names the file as its place."""
    try:
        yield
    except InvalidInputError as error:
        if error.where.startswith(str(path)):
            raise
        what = f"{error.where}: {error.what}" if error.where else error.what
        raise InvalidInputError(what, where=str(path), remedy=error.remedy) from error


@contextmanager
def report_oddities(path: Path) -> Iterator[Oddities]:
    """What collects the oddities of a file. They are logged at the end; errors raised in the block name the file."""
    oddities = Oddities()
    with locate_errors(path):
        yield oddities
    for problem in oddities.list_problems():
        log.warning("%s: %s", path, problem)


def convert_to_shape(raw: Any, shape: Any, kind: str, oddities: Oddities | None = None) -> Any:
    """What a file of this kind says, as its wire type; leniently where the oddities are collected.

    Raises `InvalidInputError` with every problem of shape.
    """
    fitted = raw
    try:
        with suppress(msgspec.ValidationError):
            return msgspec.convert(raw, shape)
        fitted = raw if oddities is None else fit_to_shape(raw, shape, "$", oddities)
        return msgspec.convert(fitted, shape)
    except msgspec.ValidationError as error:
        problems = shape_problems(fitted, shape) or [Problem("$", str(error))]
        raise InvalidInputError(list_problems(f"is not a valid {kind}", problems)) from error


def shape_problems(raw: Any, shape: Any, where: str = "$") -> list[Problem]:
    """Every difference of `raw` from `shape`, by the JSON Schema that is published for it, with its JSON path.

    The list is empty where `raw` is nested too deeply to be checked.
    """
    try:
        errors = list(_validator(shape).iter_errors(raw))
    except RecursionError:
        return []
    return [
        Problem(where + e.json_path[1:], "is empty" if e.validator_value == r"\S" else e.message[:300]) for e in errors
    ]


@cache
def _validator(shape: Any) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(msgspec.json.schema(shape))


def list_problems(headline: str, problems: list[Problem]) -> str:
    """A message with the first problems, a line each."""
    listed = list_with_limit(problems, MAX_LISTED)
    return "\n  ".join([f"{headline}: {format_count(len(problems), 'problem')}", *listed])


# Words of Python and commas after a last item, as guidelines print them. Strings are matched so as to be passed over,
# be it one that does not end: no file takes more than one pass.
NO_JSON = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|\b(?:True|False|None)\b|,(?=\s*[\]}])')
JSON_WORDS = {b"True": b"true", b"False": b"false", b"None": b"null", b",": b""}
WORDS, COMMA = "True, False and None are read as true, false and null", "a comma after the last item is left out"


def absent(value: Any, meaning: str) -> Meta:
    """Marks a field of a wire type as one that a reader can do without, and what it counts as then."""
    return Meta(extra={"absent": (value, meaning)})


# Fields that follow from an item's position (from 0) and the length of its list; they are absent of all or of none.
PLACE_UP = Meta(extra={"by_place": lambda position, _: position + 1})
PLACE_DOWN = Meta(extra={"by_place": lambda position, length: float(length - position)})
NUMBERS = {int: re.compile(r"-?[0-9]{1,18}"), float: re.compile(r"-?[0-9]{1,400}(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")}
IS_ID = {"id": True}  # `extra` of a text that may also be a number


def decode_leniently(data: Data | msgspec.Raw, shape: Any, where: str, oddities: Oddities) -> Any:
    """JSON at a place of a file as a wire type. Raises `msgspec.DecodeError` for what cannot be understood."""
    try:
        return decode_spelling(data, shape, where, oddities)
    except msgspec.ValidationError:
        raw = decode_spelling(data, Any, where, Oddities())
        return msgspec.convert(fit_to_shape(raw, shape, where, oddities), shape)


def decode_spelling(data: Data | msgspec.Raw, shape: Any, where: str, oddities: Oddities) -> Any:
    """JSON, or nearly JSON, as a shape that it must have. Raises `msgspec.DecodeError` for all else."""
    try:
        return decode(data, shape)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if (mended := _mend_json(data, where, oddities)) is None:
            raise
        return decode(mended, shape)


def _mend_json(data: Data | msgspec.Raw, where: str, oddities: Oddities) -> bytes | None:
    """The same with the words of Python in JSON's spelling and without trailing commas; None where there are none."""
    found: list[bytes] = []

    def mend(match: re.Match[bytes]) -> bytes:
        if (token := match.group()) in JSON_WORDS:
            found.append(token)
        return JSON_WORDS.get(token, token)

    mended = NO_JSON.sub(mend, bytes(data))
    commas = found.count(b",")
    for what, count in ((WORDS, len(found) - commas), (COMMA, commas)):
        if count:
            oddities.add("no JSON", what, where, count)
    return mended if found else None


def fit_to_shape(raw: Any, shape: Any, where: str, oddities: Oddities) -> Any:
    """Decoded JSON with all that can be understood brought into the form of a wire type; the rest stays as it is."""
    return _Fitter(oddities).fit(raw, _describe(shape), where, "")


_describe = cache(inspect.type_info)


@dataclass(frozen=True, slots=True)
class _Fitter:
    """Walks JSON and its wire type side by side. `where` is a JSON path, `name` the last field on it."""

    oddities: Oddities

    def fit(self, raw: Any, kind: inspect.Type, where: str, name: str) -> Any:
        match kind:
            case inspect.Metadata():
                is_number = isinstance(raw, int) and not isinstance(raw, bool)
                if is_number and (kind.extra or {}).get("id"):
                    self.oddities.add("id as number", f"`{name}` is a number, read as a text", where)
                    return str(raw)
                return self.fit(raw, kind.type, where, name)
            case inspect.StructType() if isinstance(raw, dict):
                return self.fit_fields(raw, kind, where)
            case inspect.ListType() if isinstance(raw, list):
                item_type = kind.item_type.type if isinstance(kind.item_type, inspect.Metadata) else kind.item_type
                items = self.number_items(raw, item_type, where)
                return [self.fit(item, kind.item_type, f"{where}[{n}]", name) for n, item in enumerate(items)]
            case inspect.DictType() if isinstance(raw, dict):
                return {key: self.fit(raw[key], kind.value_type, f"{where}[{key!r}]", name) for key in raw}
            case inspect.IntType() | inspect.FloatType() if isinstance(raw, str):
                return self.read_number(raw, int if isinstance(kind, inspect.IntType) else float, where, name)
        return raw

    def fit_fields(self, raw: Mapping[str, Any], kind: inspect.StructType, where: str) -> dict[str, Any]:
        """An object without the fields that its type does not have, and with those that it may lack."""
        fields = {field.encode_name: field.type for field in kind.fields}
        for name in raw:
            if name not in fields:
                self.oddities.add("unknown field", f"the unknown field `{name}` is left out", where)
        filled = dict(raw)
        for name, (value, meaning) in _list_rules(kind, "absent"):
            if raw.get(name) is None:
                self.oddities.add("absent field", f"`{name}` is absent: {meaning}", where)
                filled[name] = copy(value)
        return {
            name: self.fit(filled[name], fields[name], f"{where}.{name}", name) for name in fields if name in filled
        }

    def number_items(self, items: list[Any], kind: inspect.Type, where: str) -> list[Any]:
        """The items of a list with what follows from their order, where any of them lacks it."""
        for name, find_value in _list_rules(kind, "by_place"):
            if lacking := [n for n, item in enumerate(items) if isinstance(item, dict) and item.get(name) is None]:
                what = f"`{name}` is absent: the order of the list counts"
                self.oddities.add("absent field", what, f"{where}[{lacking[0]}]", len(lacking))
                values = (find_value(n, len(items)) for n in range(len(items)))
                items = [i | {name: v} if isinstance(i, dict) else i for i, v in zip(items, values, strict=True)]
        return items

    def read_number(self, raw: str, kind: type[int] | type[float], where: str, name: str) -> Any:
        if not NUMBERS[kind].fullmatch(raw) or not math.isfinite(float(raw)):
            return raw
        self.oddities.add("number as text", f"`{name}` is a text, read as a number", where)
        return kind(raw)


def _list_rules(kind: inspect.Type, name: str) -> Iterator[tuple[str, Any]]:
    """The fields of a struct that a reader can do without by a rule of that name."""
    for field in kind.fields if isinstance(kind, inspect.StructType) else ():
        if isinstance(field.type, inspect.Metadata) and name in (field.type.extra or {}):
            yield field.encode_name, (field.type.extra or {})[name]
