"""The tracks and editions that can be read and written. A new one is a module here and a line in `EDITIONS`.

Topics are read here; `run_files.py` reads, writes and checks runs.
"""

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from agent.tracks import ikat_2023, ikat_2024, ikat_2025, qrecc
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError, UsageError, list_with_limit
from schemas.records import Plan, Problem, Topics
from schemas.wire import decode

EDITIONS: dict[str, ModuleType] = {module.EDITION: module for module in (ikat_2023, ikat_2024, ikat_2025, qrecc)}
MAX_LISTED = 20


def get_edition(edition: str) -> ModuleType:
    """The module of an edition. The error lists those there are."""
    if edition not in EDITIONS:
        raise UsageError(f"unknown format {edition!r} (available: {', '.join(EDITIONS)})")
    return EDITIONS[edition]


def default_statement_threshold(edition: str) -> float:
    """How sure a run of an edition is of a statement before it chooses any (`Plan.sure`)."""
    min_probability: float = getattr(get_edition(edition), "SURE", Plan().min_probability)
    return min_probability


def read_topics(path: Path, edition: str | None = None) -> Topics:
    """Topics and labels of a file; the edition is detected unless given.

    Raises `InvalidInputError` with every problem of shape, each with its JSON path.
    """
    data = read_utf8(path)
    try:
        raw = decode(data)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is not JSON ({error})", where=str(path), remedy="Is it a topics file?") from error
    detected = detect_edition(raw)
    if edition is not None and detected is not None and edition != detected:
        remedy = f"Leave the edition out, or give {detected}."
        raise InvalidInputError(f"holds {detected} topics, not {edition}", where=str(path), remedy=remedy)
    if detected is None and edition is None:
        remedy = (
            "Expected a list of topics with `number`, `ptkb` and `turns` (2023, 2024) or `responses` (2025), or of "
        )
        remedy += "rows with `Conversation_no`, `Turn_no` and `Question` (qrecc)."
        raise InvalidInputError("is of no edition that can be recognised", where=str(path), remedy=remedy)
    module = get_edition(edition or str(detected))
    return _read_topics_of(module, module.TopicsFile, raw, path)


def detect_edition(raw: Any) -> str | None:
    """The edition that a list of topics looks like: 2025 calls turns `responses`, 2024 numbers topics by integers."""
    topics = [topic for topic in raw if isinstance(topic, dict)] if isinstance(raw, list) else []
    for topic in topics:
        if "Conversation_no" in topic and "Question" in topic:
            return qrecc.EDITION
        if "responses" in topic:
            return ikat_2025.EDITION
        if "turns" in topic and "number" in topic:
            return ikat_2024.EDITION if str(topic["number"]).isdigit() else ikat_2023.EDITION
    return None


def _read_topics_of(module: ModuleType, shape: Any, raw: Any, path: Path) -> Topics:
    if not raw:
        raise InvalidInputError("holds no topics", where=str(path))
    wire = convert_to_shape(raw, shape, f"{module.EDITION} topics file", path)
    try:
        topics: Topics = module.read_topics(wire)
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=str(path)) from error
    return topics


def convert_to_shape(raw: Any, shape: Any, kind: str, path: Path) -> Any:
    """What a file of this kind says, as its wire type. Raises `InvalidInputError` with every problem of shape."""
    try:
        return msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        problems = shape_problems(raw, shape) or [Problem("$", str(error))]
        raise InvalidInputError(list_problems(f"is not a valid {kind}", problems), where=str(path)) from error


def shape_problems(raw: Any, shape: Any, where: str = "$") -> list[Problem]:
    """Everything in which `raw` is not of `shape`, by the JSON Schema that is published for it, with JSON paths.

    Of what is nested too deeply to be told of, nothing.
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
    return "\n  ".join([f"{headline}: {len(problems)} problems", *list_with_limit(problems, MAX_LISTED)])
