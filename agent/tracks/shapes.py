"""JSON checked against the wire types: every problem of shape in plain words, with its JSON path."""

from functools import cache
from typing import Any

import msgspec

from agent.tracks.lenient_reading import fit_to_shape
from agent.tracks.oddities import Oddities
from schemas.errors import InvalidInputError, format_count
from schemas.records import Problem

MAX_LISTED = 20


def convert_to_shape(raw: Any, shape: Any, kind: str, oddities: Oddities | None = None) -> Any:
    """What a file of this kind says, as its wire type; leniently where the oddities are collected.

    Raises `InvalidInputError` with every problem of shape.
    """
    try:
        return msgspec.convert(raw, shape)
    except msgspec.ValidationError:
        fitted = raw if oddities is None else fit_to_shape(raw, shape, "$", oddities)
    try:
        return msgspec.convert(fitted, shape)
    except msgspec.ValidationError as error:
        problems = shape_problems(fitted, shape) or [Problem("$", str(error))]
        raise InvalidInputError(list_problems(f"is not a valid {kind}", problems)) from error


def shape_problems(raw: Any, shape: Any, where: str = "$") -> list[Problem]:
    """Every difference of `raw` from `shape`, by the JSON Schema that is published for it, with its JSON path.

    The list is empty where `raw` is nested too deeply to be checked.
    """
    try:
        return [
            Problem(where + error.json_path[1:], _explain_schema_error(error))
            for error in _validator(shape).iter_errors(raw)
        ]
    except RecursionError:
        return []


@cache
def _validator(shape: Any) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(msgspec.json.schema(shape))


def _explain_schema_error(error: Any) -> str:
    """A schema error in plain words."""
    if error.validator == "pattern" and error.validator_value == r"\S":
        return "is empty"
    return str(error.message)[:300]


def list_problems(headline: str, problems: list[Problem]) -> str:
    """A message with the first problems, a line each."""
    shown = [f"  {problem}" for problem in problems[:MAX_LISTED]]
    more = [f"  ... and {len(problems) - MAX_LISTED} more"] if len(problems) > MAX_LISTED else []
    return "\n".join([f"{headline}: {format_count(len(problems), 'problem')}", *shown, *more])
