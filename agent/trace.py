"""The trace: one line a turn, flushed at once, from which any run file can be made again without asking a model.

The first line says what decides the run (`Settings`); a trace is continued only under the same settings. A crash costs
at most the turn in hand: a torn last line is cut off on resuming.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import msgspec

from agent.files import read_bytes
from schemas.errors import InvalidInputError, RunError, UsageError
from schemas.records import Answered, Call

VERSION = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides the bytes of a run."""

    edition: str
    topics: str  # SHA-256 of what the run sees of the topics
    index: str  # SHA-256 of the index's own description
    passages: int
    model: str
    model_digest: str
    prompts: str  # SHA-256
    k: int
    shown: int
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
    """A trace as read: settings, finished turns, and how many bytes of the file they are."""

    settings: Settings
    lines: tuple[Line, ...]
    size: int


def read_trace(path: Path) -> Trace:
    """A trace; a torn last line is left out. Raises `InvalidInputError` for a damaged one, with the line's number."""
    data = read_bytes(path)
    whole = data[: data.rfind(b"\n") + 1]
    first, *rest = whole.splitlines(keepends=True) or [b""]
    try:
        settings = msgspec.json.decode(first, type=Settings)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no trace of this version ({error})", where=f"{path}:1") from error
    lines = []
    for number, line in enumerate(rest, start=2):
        try:
            lines.append(msgspec.json.decode(line, type=Line))
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"damaged line ({error})", where=f"{path}:{number}") from error
    return Trace(settings, tuple(lines), len(whole))


def resume(path: Path, settings: Settings) -> Trace:
    """The trace to go on with: the one at `path` if it was made under the same settings, an empty one if there is none.

    Raises `UsageError` naming every setting that differs.
    """
    data = read_bytes(path) if path.exists() else b""
    if b"\n" not in data and data[:1] in (b"", b"{"):  # nothing there, or cut off within the first line
        return Trace(settings, (), 0)
    found = read_trace(path)
    old, new = asdict(found.settings), asdict(settings)
    different = [f"  {name}: {old[name]!r} then, {new[name]!r} now" for name in old if old[name] != new[name]]
    if different:
        what = "\n".join(["was made under other settings, so it cannot be resumed:", *different])
        raise UsageError(what, where=str(path), remedy="Give --overwrite to start again.")
    return found


@contextmanager
def writing(path: Path, trace: Trace) -> Iterator[IO[bytes]]:
    """The trace file opened to go on after what `trace` holds. Only one process at a time may write it."""
    with path.open("ab") as file:
        _lock(file, path)
        os.truncate(path, trace.size)
        if not trace.size:
            append(file, trace.settings)
        yield file


def append(file: IO[bytes], line: Line | Settings) -> None:
    """Write one line and hand it to the disk."""
    try:
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(file.name)) from error


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on this system
        pass
    except OSError as error:
        remedy = "Wait for it, or give another name with --trace."
        raise UsageError("another process is writing this trace", where=str(path), remedy=remedy) from error
