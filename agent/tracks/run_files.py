"""Run files of any edition: written and read turn by turn, and checked.

A file is one JSON object whose last field is the list of turns (iKAT 2023, 2024), a JSON array of turns (QReCC), or
lines of turns (iKAT 2025). However long it is, only one turn is in memory in its decoded form.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import msgspec

from agent.tracks.registry import EDITIONS, get_edition, shape_problems
from agent.tracks.rules import COLLECTIONS, CheckContext, RunChecker
from agent.tracks.run_records import RunResponse, RunStatement, RunTurn, to_run_turns
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Problem, RunInfo, Topics, TurnResult
from schemas.wire import Data, decode

OnTurn = Callable[[RunTurn], None]


def ignore_turn(_turn: RunTurn) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn of a file, not yet decoded. `where` is its JSON path."""

    where: str
    data: Data | msgspec.Raw


def encode_run(
    edition: str, answered: Iterable[TurnResult], info: RunInfo, seen: OnTurn = ignore_turn
) -> Iterator[bytes]:
    """The run file of an edition, piece by piece: a pure function of the answered turns."""
    return write_run(edition, to_run_turns(answered, info), info, seen)


def write_run(edition: str, turns: Iterable[RunTurn], info: RunInfo, seen: OnTurn = ignore_turn) -> Iterator[bytes]:
    """The file of some turns; `seen` is told each turn as a reader of the file will find it.

    Raises `InvalidInputError` for what the edition cannot express.
    """
    module = get_edition(edition)
    _check_parts(edition, info)
    before, between, after = _encode_parts(module, info)
    yield before
    for number, turn in enumerate(turns):
        data, written = _encode_entry(module, turn, info)
        yield (between if number else b"") + data
        seen(module.turn_of(written, _json_path(module, number), info))
    yield after


def _encode_parts(module: ModuleType, info: RunInfo) -> tuple[bytes, bytes, bytes]:
    """What stands before, between and after the turns of a file."""
    if module.ENDING == ".jsonl":
        return b"", b"\n", b"\n"
    if hasattr(module, "head"):
        return msgspec.json.encode(module.head(info))[:-1] + b',"turns":[', b",", b"]}"
    return b"[", b",", b"]"


def _json_path(module: ModuleType, number: int) -> str:
    """Where the turn of a number (from 0) stands in a file."""
    if module.ENDING == ".jsonl":
        return f"line {number + 1} $"
    return f"$.turns[{number}]" if hasattr(module, "head") else f"$[{number}]"


def _encode_entry(module: ModuleType, turn: RunTurn, info: RunInfo) -> tuple[bytes, Any]:
    """A turn as it stands in the file, and as it is read from there."""
    try:
        data = msgspec.json.encode(module.entry(turn, info))
        return data, decode(data, module.RunEntry)
    except ValueError as error:  # msgspec's own errors are ValueErrors
        what = f"{module.EDITION} cannot express it ({error})"
        raise InvalidInputError(what, where=f"turn {turn.turn_id}") from error


def check_expressible(edition: str, info: RunInfo, topics: Topics, responses: int = 1) -> None:
    """Raises, before any work, where an edition cannot say what a run over these topics will have to say.

    `UsageError` for a part left out that the edition must have, `InvalidInputError` for a turn or statement id.
    """
    _check_parts(edition, info)
    module = get_edition(edition)
    if responses > 1 and module.LIMITS.responses == 1:
        raise UsageError(f"{edition} has one answer a turn", remedy="Leave --responses out.")
    for topic in topics.topics:
        statements = tuple(RunStatement(statement.id, statement.text) for statement in topic.ptkb)
        for turn in topic.turns:
            _encode_entry(module, RunTurn(turn.id, (RunResponse(1, "", (), (), statements),)), info)


def _check_parts(edition: str, info: RunInfo) -> None:
    for part in ("rewrite", "passages", "answer"):
        if not getattr(info.parts, part) and part not in get_edition(edition).OPTIONAL:
            able = ", ".join(name for name, module in EDITIONS.items() if part in module.OPTIONAL)
            raise UsageError(f"{edition} has no runs without {part} (it may be left out of: {able})")


def read_run(edition: str, data: Data) -> tuple[RunInfo, Iterator[RunTurn]]:
    """What a run says of itself, and its turns.

    Raises `msgspec.DecodeError` for what is not of the edition's shape; `run_problems` says all that is wrong.
    """
    module = get_edition(edition)
    info, entries = _split_entries(module, data)
    return info, (_decode_entry(module, entry, info) for entry in entries)


def _decode_entry(module: ModuleType, entry: Entry, info: RunInfo) -> RunTurn:
    turn: RunTurn = module.turn_of(decode(entry.data, module.RunEntry), entry.where, info)
    return turn


def _split_entries(module: ModuleType, data: Data) -> tuple[RunInfo, Iterator[Entry]]:
    """The head and the turns of a file, the turns undecoded."""
    if module.ENDING == ".jsonl":
        lines = enumerate(bytes(data).splitlines())
        return RunInfo(""), (Entry(_json_path(module, n), line) for n, line in lines if line.strip())
    if hasattr(module, "RunHead"):
        head = decode(data, module.RunHead)
        return module.info_of(head), (Entry(_json_path(module, n), raw) for n, raw in enumerate(head.turns))
    rows = decode(data, list[msgspec.Raw])
    return RunInfo(""), (Entry(_json_path(module, n), raw) for n, raw in enumerate(rows))


def detect_run(data: Data) -> str:
    """The edition of a run file. Raises `InvalidInputError` where it is none that is known."""
    try:
        raw = decode(_first_line(data))
        if "references" in raw:
            return "ikat-2025"
    except (msgspec.DecodeError, TypeError):
        pass
    try:
        head = decode(data, dict[str, msgspec.Raw] | list[dict[str, msgspec.Raw]])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no run ({error})") from error
    if isinstance(head, list) and head and "Conversation_no" in head[0] and "Question" not in head[0]:
        return "qrecc"
    if isinstance(head, dict) and "turns" in head:
        return "ikat-2024" if "eval_response" in head else "ikat-2023"
    remedy = f"A run is of one of: {', '.join(EDITIONS)}."
    raise InvalidInputError("is a run of no edition that can be recognised", remedy=remedy)


def _first_line(data: Data) -> bytes:
    return bytes(data[: 1 << 24]).lstrip().partition(b"\n")[0]


def make_checker(edition: str, info: RunInfo, topics: Topics, collection: str = "any") -> RunChecker:
    """The rules of an edition, to be told the turns of a run one by one."""
    ptkb = {turn.id: topic.ptkb for topic in topics.topics for turn in topic.turns}
    return RunChecker(
        topics, CheckContext(get_edition(edition).LIMITS, info.parts.answer, COLLECTIONS[collection], ptkb)
    )


def run_problems(data: Data, topics: Topics, edition: str | None = None, collection: str = "any") -> list[Problem]:
    """Everything wrong with a run file: its shape by the published JSON Schema, and the rules of `rules.py`."""
    module = get_edition(edition or topics.edition)
    try:
        info, entries = _split_entries(module, data)
    except msgspec.DecodeError as error:
        return _head_problems(module, data) or [Problem("$", f"is not JSON ({error})")]
    checked = make_checker(module.EDITION, info, topics, collection)
    problems: list[Problem] = []
    for entry in entries:
        problems.extend(_entry_problems(module, entry, info, checked))
    return [*problems, *checked.end()]


def _entry_problems(module: ModuleType, entry: Entry, info: RunInfo, checked: RunChecker) -> Sequence[Problem]:
    try:
        turn = _decode_entry(module, entry, info)
    except msgspec.DecodeError as error:
        return _shape_problems_of_entry(module.RunEntry, entry, checked) or [Problem(entry.where, str(error))]
    return list(checked.turn(turn))


def _shape_problems_of_entry(shape: Any, entry: Entry, checked: RunChecker) -> list[Problem]:
    try:
        raw = decode(entry.data)
    except msgspec.DecodeError as error:
        return [Problem(entry.where, f"is not JSON ({error})")]
    turn_id = raw.get("turn_id") if isinstance(raw, dict) else None
    place = ""
    if isinstance(turn_id, str):
        checked.seen(turn_id)
        place = f"turn {turn_id} "
    return [Problem(place + p.where, p.what) for p in shape_problems(raw, shape, entry.where)]


def _head_problems(module: ModuleType, data: Data) -> list[Problem]:
    try:
        return shape_problems(decode(data), module.Run)
    except msgspec.DecodeError:
        return []
