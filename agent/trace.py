"""The trace: one line a turn, flushed at once, from which any run file can be made again without asking a model.

The first line says what decides the run (`Settings`); a trace is continued only under the same settings. A crash costs
at most the turn in hand: a torn last line is cut off on resuming.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from indexes.whole import sync
from schemas.errors import InvalidInputError, MissingError, RunError, UsageError
from schemas.records import Answered, Call, Mode, Plan, Response
from schemas.wire import decode

VERSION = 3
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides the bytes of a run."""

    edition: str
    topics: str  # SHA-256 of what the run sees of the topics
    turns: int
    statements: int  # personal ones, of all topics
    mode: Mode
    labels: str  # SHA-256 of the labels that the run was handed; empty in an automatic run
    ranking: str  # SHA-256 of the ranking that the run was handed; empty where it searched
    ranking_of_labels: bool
    passages: str  # SHA-256 of the index's own description, or of the passages given
    model: str
    model_digest: str
    embedder: str  # empty where words alone count
    embedder_digest: str
    prompts: str  # SHA-256
    plan: Plan
    convagent: str
    trace_version: int = VERSION


@dataclass(frozen=True, slots=True)
class Line:
    """One answered turn with the calls that made it."""

    answered: Answered
    calls: tuple[Call, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace as found: what was said at each finished turn, and where in the file its line is.

    Lines stay on disk until they are asked for: a trace of any length can be exported.
    """

    path: Path
    settings: Settings
    replies: Mapping[str, str]  # the first response's text, by turn id in file order
    places: Mapping[str, tuple[int, int]]  # byte and line number, by turn id; of a turn answered again, the last
    without_model: Mapping[str, str]  # why, by turn id, where the model failed
    size: int  # bytes that hold whole lines

    def lines(self, turn_ids: Iterable[str] | None = None) -> Iterator[Line]:
        """The lines of the turns asked for, in that order; of all by default. Raises as `read_trace` does."""
        with self.path.open("rb") as file:
            for turn_id in self.places if turn_ids is None else turn_ids:
                start, number = self.places[turn_id]
                file.seek(start)
                yield _decoded(file.readline(), Line, f"{self.path}:{number}")


class _SaidTurn(msgspec.Struct):
    turn_id: str
    responses: list[Response]
    without_model: str = ""


class _Said(msgspec.Struct):
    """As much of a line as is needed to go on after it."""

    answered: _SaidTurn


def read_trace(path: Path) -> Trace:
    """A trace; a torn last line is left out. Raises `InvalidInputError` for a damaged one, with the line's number."""
    replies: dict[str, str] = {}
    places: dict[str, tuple[int, int]] = {}
    failed: dict[str, str] = {}
    try:
        with path.open("rb") as file:
            settings = _settings(file.readline(), path)
            size = file.tell()
            for number, line in enumerate(file, start=2):
                if not line.endswith(b"\n"):
                    break
                said = _decoded(line, _Said, f"{path}:{number}").answered
                replies[said.turn_id] = said.responses[0].text if said.responses else ""
                places[said.turn_id] = size, number
                failed.pop(said.turn_id, None)
                failed |= {said.turn_id: said.without_model} if said.without_model else {}
                size += len(line)
    except FileNotFoundError as error:
        raise MissingError("no such file", where=str(path)) from error
    except OSError as error:
        raise MissingError(f"cannot be read ({error.strerror})", where=str(path)) from error
    return Trace(path, settings, replies, places, failed, size)


def _settings(line: bytes, path: Path) -> Settings:
    try:
        return decode(line, Settings)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no trace of this version ({error})", where=f"{path}:1") from error


def _decoded(line: bytes, shape: type[T], where: str) -> T:
    try:
        return decode(line, shape)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"damaged line ({error})", where=where) from error


def empty(path: Path, settings: Settings) -> Trace:
    """A trace that is to be begun."""
    return Trace(path, settings, {}, {}, {}, 0)


def resume(path: Path, settings: Settings) -> Trace:
    """The trace to go on with: the one at `path` if it was made under the same settings, an empty one if there is none.

    In each topic, turns from the first at which the model failed on are answered again. Raises `UsageError` naming
    every setting that differs.
    """
    if not path.exists() or _torn_at_once(path):
        return empty(path, settings)
    found = read_trace(path)
    old, new = _flat(found.settings), _flat(settings)
    different = [f"  {name}: {old[name]!r} then, {new[name]!r} now" for name in old if old[name] != new[name]]
    if different:
        what = "\n".join(["was made under other settings, so it cannot be resumed:", *different])
        raise UsageError(what, where=str(path), remedy="Give --overwrite to start again.")
    return replace(found, replies=dict(_finished(found)))


def _finished(trace: Trace) -> Iterator[tuple[str, str]]:
    broken: set[str] = set()  # topics
    for turn_id, reply in trace.replies.items():
        topic = turn_id.rpartition("_")[0]
        if turn_id in trace.without_model:
            broken.add(topic)
        if topic not in broken:
            yield turn_id, reply


def _torn_at_once(path: Path) -> bool:
    """Nothing there, or cut off within the first line."""
    with path.open("rb") as file:
        first = file.readline()
    return not first.endswith(b"\n") and first[:1] in (b"", b"{")


def _flat(settings: Settings) -> dict[str, object]:
    """Every setting by its name, those of the plan too."""
    fields: dict[str, object] = asdict(settings)
    plan = asdict(settings.plan)
    parts = asdict(settings.plan.parts)
    del fields["plan"], plan["parts"]
    wanted = {f"part {name}": value for name, value in parts.items()}  # `answer` is a part, and a way to answer
    return fields | plan | wanted


@contextmanager
def writing(trace: Trace) -> Iterator[IO[bytes]]:
    """The trace file opened to go on after what `trace` holds. Only one process at a time may write it."""
    try:
        file = trace.path.open("ab", buffering=0)  # what a full disk did not take is not tried again on closing
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(trace.path)) from error
    with file:
        _lock(file, trace.path)
        file.truncate(trace.size)
        if not trace.size:
            append(file, trace.settings)
            sync(trace.path.parent)
        yield file


def append(file: IO[bytes], line: Line | Settings) -> None:
    """Write one line and hand it to the disk."""
    data = memoryview(msgspec.json.encode(line) + b"\n")
    try:
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())
    except OSError as error:
        remedy = "What was answered is kept. Make room, and the same command with --resume goes on."
        raise RunError(f"could not be written ({error.strerror})", where=str(file.name), remedy=remedy) from error


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on this system
        pass
    except OSError as error:
        remedy = "Wait for it, or give another name with --trace."
        raise UsageError("another process is writing this trace", where=str(path), remedy=remedy) from error
