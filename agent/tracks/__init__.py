"""The tracks and editions that can be read and written. A new one is a module here and a line in `TRACKS`."""

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from agent.files import read_bytes
from agent.tracks import ikat_2023, ikat_2024, ikat_2025
from agent.tracks.rules import check
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Answered, Problem, RunInfo, Topics

TRACKS: dict[str, ModuleType] = {module.EDITION: module for module in (ikat_2023, ikat_2024, ikat_2025)}
MAX_LISTED = 20


def track(edition: str) -> ModuleType:
    """The module of an edition. The error lists those there are."""
    if edition not in TRACKS:
        raise UsageError(f"unknown format {edition!r} (available: {', '.join(TRACKS)})")
    return TRACKS[edition]


def read_topics(path: Path, edition: str | None = None) -> Topics:
    """Topics and labels of a file; the edition is detected unless given.

    Raises `InvalidInputError` with every problem of shape, each with its JSON path.
    """
    data = read_bytes(path)
    try:
        raw = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is not JSON ({error})", where=str(path), remedy="Is it a topics file?") from error
    detected = detect_edition(raw)
    if edition is not None and detected is not None and edition != detected:
        remedy = f"Leave the edition out, or give {detected}."
        raise InvalidInputError(f"holds {detected} topics, not {edition}", where=str(path), remedy=remedy)
    if detected is None and edition is None:
        remedy = "Expected a list of topics with `number`, `ptkb` and `turns` (2023, 2024) or `responses` (2025)."
        raise InvalidInputError("is of no edition that can be recognised", where=str(path), remedy=remedy)
    module = track(edition or str(detected))
    return _read(module, module.TopicsFile, raw, path)


def detect_edition(raw: Any) -> str | None:
    """The edition that a list of topics looks like: 2025 calls turns `responses`, 2024 numbers topics by integers."""
    topics = [topic for topic in raw if isinstance(topic, dict)] if isinstance(raw, list) else []
    for topic in topics:
        if "responses" in topic:
            return ikat_2025.EDITION
        if "turns" in topic and "number" in topic:
            return ikat_2024.EDITION if str(topic["number"]).isdigit() else ikat_2023.EDITION
    return None


def _read(module: ModuleType, shape: Any, raw: Any, path: Path) -> Topics:
    if not raw:
        raise InvalidInputError("holds no topics", where=str(path))
    try:
        wire = msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        problems = shape_problems(raw, shape) or [Problem("$", str(error))]
        raise InvalidInputError(
            _listing(f"is not a valid {module.EDITION} topics file", problems), where=str(path)
        ) from error
    try:
        topics: Topics = module.read_topics(wire)
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=str(path)) from error
    return topics


def shape_problems(raw: Any, shape: Any) -> list[Problem]:
    """Everything in which `raw` is not of `shape`, by the JSON Schema that is published for it, with JSON paths."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(msgspec.json.schema(shape))
    return [Problem(error.json_path, _said(error)) for error in validator.iter_errors(raw)]


def _said(error: Any) -> str:
    """A schema error in plain words."""
    if error.validator == "pattern" and error.validator_value == r"\S":
        return "is empty"
    return str(error.message)[:300]


def make_run(edition: str, answered: Iterable[Answered], info: RunInfo) -> bytes:
    """The run file of an edition: a pure function of the answered turns."""
    data: bytes = track(edition).make_run(answered, info)
    return data


def run_problems(data: bytes, topics: Topics, edition: str | None = None) -> list[Problem]:
    """Everything wrong with a run file: its shape by the published JSON Schema, then the rules of `rules.py`."""
    module = track(edition or topics.edition)
    try:
        run = module.read_run(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _run_shape_problems(module, data) or [Problem("$", str(error))]
    return check(module.view(run), topics)


def _run_shape_problems(module: ModuleType, data: bytes) -> list[Problem]:
    """By line where the format is lines."""
    documents = enumerate(data.splitlines(), start=1) if module.ENDING == ".jsonl" else [(0, data)]
    shape = module.RunLine if module.ENDING == ".jsonl" else module.Run
    problems: list[Problem] = []
    for number, document in documents:
        place = f"line {number} " if number else ""
        try:
            raw = msgspec.json.decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(Problem(f"{place}$", f"is not JSON ({error})"))
            continue
        turn = f"turn {raw['turn_id']} " if isinstance(raw, dict) and isinstance(raw.get("turn_id"), str) else ""
        problems.extend(Problem(f"{turn}{place}{p.where}", p.what) for p in shape_problems(raw, shape))
    return problems


def _listing(headline: str, problems: list[Problem]) -> str:
    shown = [f"  {problem}" for problem in problems[:MAX_LISTED]]
    more = [f"  ... and {len(problems) - MAX_LISTED} more"] if len(problems) > MAX_LISTED else []
    return "\n".join([f"{headline}: {len(problems)} problems", *shown, *more])
