"""Topics and run files of any edition: detected, read leniently, written and checked.

Runs are written and checked turn by turn: however long, one turn is decoded at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec

from agent.tracks.edition import Edition, Entry
from agent.tracks.lenient_reading import (
    Oddities,
    check_unique,
    convert_to_shape,
    decode_leniently,
    decode_spelling,
    fit_to_shape,
    report_oddities,
    shape_problems,
)
from agent.tracks.registry import EDITION_NAMES, load_edition, load_editions
from agent.tracks.rules import STRICT, Checks, RunChecker
from agent.tracks.run_records import RunResponse, RunStatement, RunTurn, to_run_turns
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Problem, RunInfo, Topics, TurnResult
from schemas.wire import Data, decode

OnTurn = Callable[[RunTurn], None]
MAX_FIRST_LINE = 1 << 24  # bytes


def read_topics(path: Path) -> Topics:
    """Topics and labels of a file, whose edition is detected. What was odd about it is logged."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        return parse_topics(data, oddities)


def parse_topics(data: Data, oddities: Oddities) -> Topics:
    """The same of its contents. Raises `InvalidInputError` with every problem of shape, each with its JSON path."""
    try:
        raw = decode_spelling(data, Any, "$", oddities)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is not JSON ({error})", remedy="Is it a topics file?") from error
    form = _find_edition(raw)
    if not raw:
        raise InvalidInputError("holds no topics")
    return form.read_topics(convert_to_shape(raw, form.topics_shape, f"{form.name} topics file", oddities))


def _find_edition(raw: Any) -> Edition:
    if detected := detect_edition(raw):
        return load_edition(detected)
    expected = []
    for edition in load_editions():
        fields = [field for topic in get_args(edition.topics_shape) for field in msgspec.structs.fields(topic)]
        expected.append(f"{', '.join(f'`{f.encode_name}`' for f in fields if f.required)} ({edition.name})")
    remedy = f"Expected a list of objects with {', or '.join(expected)}."
    raise InvalidInputError("is of no edition that can be recognised", remedy=remedy)


def detect_edition(raw: Any) -> str | None:
    """The name of the edition that the first topic of a list of which that can be said looks like."""
    topics = [topic for topic in raw if isinstance(topic, dict)] if isinstance(raw, list) else []
    return next((edition.name for topic in topics for edition in load_editions() if edition.detects_topic(topic)), None)


def encode_run(
    edition: str, answered: Iterable[TurnResult], info: RunInfo, on_turn: OnTurn = lambda _turn: None
) -> Iterator[bytes]:
    """The run file of an edition, piece by piece; `on_turn` gets each turn as a reader of the file will find it.

    Raises `InvalidInputError` for what the edition cannot express.
    """
    form = load_edition(edition)
    _check_info(form, info)
    before, between, after = form.encode_frame(info)
    yield before
    for number, turn in enumerate(to_run_turns(answered, info)):
        data, written = _encode_entry(form, turn, info)
        yield (between if number else b"") + data
        on_turn(form.read_entry(written, form.json_path(number), info))
    yield after


def _encode_entry(form: Edition, turn: RunTurn, info: RunInfo) -> tuple[bytes, Any]:
    """A turn as it stands in the file, and as it is read from there."""
    try:
        data = msgspec.json.encode(form.make_entry(turn, info))
        return data, decode(data, form.entry_shape)
    except ValueError as error:  # msgspec's own errors are ValueErrors
        what = f"{form.name} cannot express it ({error})"
        raise InvalidInputError(what, where=f"turn {turn.turn_id}") from error


def check_expressible(edition: str, info: RunInfo, topics: Topics, responses: int = 1) -> None:
    """Raises, before any work, where an edition cannot say what a run over these topics will have to say.

    `UsageError` for a part left out that the edition must have, `InvalidInputError` for a turn or statement id.
    """
    form = load_edition(edition)
    _check_info(form, info)
    if responses > (most := form.rules.most_responses()):
        raise UsageError(f"--responses {responses}: for {edition} at most {most} are written", remedy="Give fewer.")
    for topic in topics.topics:
        statements = tuple(RunStatement(statement.id, statement.text) for statement in topic.ptkb)
        for turn in topic.turns:
            _encode_entry(form, RunTurn(turn.id, (RunResponse(1, "", (), (), statements),)), info)


def _check_info(form: Edition, info: RunInfo) -> None:
    """Raises `UsageError` for a run's name, or for parts left out, that an edition's runs cannot have."""
    if info.name.split() not in ([], [info.name]):
        raise UsageError(f"a run's name has no spaces: {info.name!r}", remedy="Give another --run-name.")
    for part in ("rewrite", "passages", "answer"):
        if not getattr(info.parts, part) and part not in form.optional_parts:
            able = ", ".join(sorted(edition.name for edition in load_editions() if part in edition.optional_parts))
            raise UsageError(f"{form.name} has no runs without {part} (it may be left out of: {able})")


def read_run(data: Data, oddities: Oddities) -> tuple[str, RunInfo, dict[str, RunTurn]]:
    """The edition of a run, what its head says, and its turns by id; what is odd about it is collected.

    Raises `InvalidInputError` for what is no valid run, or has a turn twice. `run_problems` lists all that is wrong.
    """
    form = load_edition(detect_run(data))
    try:
        info, entries = form.split_entries(data, oddities)
        turns = [_decode_entry(form, entry, info, oddities) for entry in entries]
    except msgspec.DecodeError as error:
        remedy = "`convagent validate` lists all that is wrong with it."
        raise InvalidInputError(f"is no valid {form.name} run ({error})", remedy=remedy) from error
    check_unique(("turn", turn.turn_id) for turn in turns)
    return form.name, info, {turn.turn_id: turn for turn in turns}


def _decode_entry(form: Edition, entry: Entry, info: RunInfo, oddities: Oddities) -> RunTurn:
    where, data = entry
    try:
        return form.read_entry(decode_leniently(data, form.entry_shape, where, oddities), where, info)
    except msgspec.DecodeError as error:
        raise msgspec.DecodeError(f"{where}: {error}") from error


def detect_run(data: Data) -> str:
    """The name of the edition of a run file. Raises `InvalidInputError` for what is a run of none."""
    fields = _read_first_fields(data)
    for edition in load_editions():
        if edition.detects_run(fields):
            return edition.name
    try:
        decode(data, dict[str, msgspec.Raw] | list[dict[str, msgspec.Raw]])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no run ({error})") from error
    remedy = f"A run is of one of: {', '.join(EDITION_NAMES)}."
    raise InvalidInputError("is a run of no edition that can be recognised", remedy=remedy)


def _read_first_fields(data: Data) -> Mapping[str, msgspec.Raw]:
    """The fields of the head of a run, or of its first turn where it has no head; none of what is no run."""
    first_line = bytes(data[:MAX_FIRST_LINE]).lstrip().partition(b"\n")[0]
    fields: Any = dict[str, msgspec.Raw]
    forms = (data, fields), (data, list[fields]), (first_line, fields)
    for part, shape in forms:
        with suppress(msgspec.DecodeError):
            found = decode_spelling(part, shape, "$", Oddities())
            return found if isinstance(found, dict) else next(iter(found), {})
    return {}


def run_problems(data: Data, topics: Topics, edition: str | None = None, checks: Checks = STRICT) -> list[Problem]:
    """Everything wrong with a run file: its shape, what is odd about it, and the rules of `rules.py`."""
    form = load_edition(edition or topics.edition)
    oddities = Oddities()
    try:
        info, entries = form.split_entries(data, oddities)
    except msgspec.DecodeError as error:
        return _find_shape_problems(data, form.run_shape, "$")[1] or [Problem("$", f"is not JSON ({error})")]
    checker = RunChecker(form.rules, topics, info, checks)
    problems: list[Problem] = []
    for entry in entries:
        try:
            problems += checker.check_turn(_decode_entry(form, entry, info, oddities))
        except msgspec.DecodeError as error:
            turn_id, found = _find_shape_problems(entry[1], form.entry_shape, entry[0])
            checker.seen.add(turn_id)
            place = f"turn {turn_id} " if turn_id else ""
            problems += [Problem(place + p.where, p.what) for p in found] or [Problem(entry[0], str(error))]
    problems += [*oddities.list_problems(form.rules.refused_oddities), *checker.check_all_seen()]
    return [replace(problem, severity="error") for problem in problems] if checks.strict else problems


def _find_shape_problems(data: Data | msgspec.Raw, shape: Any, where: str) -> tuple[str, list[Problem]]:
    """The turn id of a part of a file, if it has one, and how the part differs from its shape."""
    try:
        raw = decode_spelling(data, Any, where, Oddities())
    except msgspec.DecodeError as error:
        return "", [Problem(where, f"is not JSON ({error})")]
    turn_id = raw.get("turn_id") if isinstance(raw, dict) else None
    fitted = fit_to_shape(raw, shape, where, Oddities())
    return turn_id if isinstance(turn_id, str) else "", shape_problems(fitted, shape, where)
