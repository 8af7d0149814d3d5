"""The trace: one line a turn, flushed at once, from which any run file can be made again without asking a model.

The first line says what decides the run (`RunSettings`); a trace is continued only under the same settings. A crash
costs at most the turn in hand: a torn last line is cut off on resuming.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import msgspec

from indexes.storage import files
from indexes.storage.atomic_files import sync_to_disk
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Call, Mode, Plan, RunInfo, TurnResult
from schemas.wire import decode

FIRST_BYTES = 1 << 16  # the settings, which are the first line, are shorter
VERSION = 10  # raised whenever a field of a trace changes
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDescription:
    """What of a worker decides the bytes of a run."""

    passages: str = ""  # SHA-256 of the index's own description, or of the passages given
    model: str
    model_digest: str = ""
    model_settings: str = ""  # its constants: sampling, shapes of batches
    embedder: str = ""  # empty where words alone count
    embedder_digest: str = ""
    encoder_digest: str = ""  # of what the embedding model was taught; empty where nothing was
    prompts: str = ""  # SHA-256
    convagent: str = ""
    source_code: str = ""  # a digest of its files
    processor: str = ""  # what computed: llama.cpp's build and processor features; empty where it computed nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(WorkerDescription):
    """Everything that decides the bytes of a run."""

    edition: str
    topics: str = ""  # SHA-256 of what the run sees of the topics
    turns: int
    mode: Mode = "automatic"
    labels: str = ""  # SHA-256 of the labels that the run was handed; empty in an automatic run
    ranking: str = ""  # SHA-256 of the ranking that the run was handed; empty where it searched
    ranking_of_labels: bool = False
    plan: Plan = Plan()
    trace_version: int = VERSION

    def describe_run(self, name: str, team: str) -> RunInfo:
        """What a run made under these settings says about itself."""
        return RunInfo(name, self.mode, team, self.plan.parts, self.mode == "manual" or self.ranking_of_labels)


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One answered turn with the calls that made it."""

    answered: TurnResult
    calls: tuple[Call, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace as found: what was said at each finished turn, and where in the file its line is.

    Lines stay on disk until they are asked for: a trace of any length can be exported.
    """

    path: Path
    settings: RunSettings
    replies: Mapping[str, str] = field(default_factory=dict)  # the first response's text, by turn id in file order
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # byte and line number of a turn's last line
    without_model: Mapping[str, str] = field(default_factory=dict)  # why, by turn id, where the model failed
    size: int = 0  # bytes that hold whole lines; none of a trace that is to be begun

    def lines(self, turn_ids: Iterable[str] | None = None) -> Iterator[TraceLine]:
        """The lines of the turns asked for, in that order; of all by default. Raises as `read_trace` does."""
        with self.path.open("rb") as file:
            for turn_id in self.places if turn_ids is None else turn_ids:
                start, number = self.places[turn_id]
                file.seek(start)
                yield _decode_line(file.readline(), f"{self.path}:{number}")


def read_trace(path: Path) -> Trace:
    """A trace; a torn last line is left out. Raises `InvalidInputError` for a damaged one, with the line's number."""
    replies: dict[str, str] = {}
    places: dict[str, tuple[int, int]] = {}
    failed: dict[str, str] = {}
    with files.open_to_read(path) as file:
        settings = _decode_settings(file.readline(), path)
        size = file.tell()
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n"):
                break
            turn = _decode_line(line, f"{path}:{number}").answered
            replies[turn.turn_id] = turn.response.text
            places[turn.turn_id] = size, number
            failed[turn.turn_id] = turn.without_model
            size += len(line)
    return Trace(path, settings, replies, places, {id: why for id, why in failed.items() if why}, size)


def is_trace(path: Path) -> bool:
    """Whether a file begins as a trace does. Raises `MissingError` where it cannot be read."""
    with files.open_to_read(path) as file:
        return b'"trace_version"' in file.readline(FIRST_BYTES)


def _decode_settings(line: bytes, path: Path) -> RunSettings:
    try:
        version = decode(line, dict[str, Any]).get("trace_version", VERSION)
        if version != VERSION:
            remedy = "Answer the topics again (--overwrite); the run file that was made with it stays valid."
            what = f"is a trace of another version of convagent (trace {version}; this one reads {VERSION})"
            raise InvalidInputError(what, where=f"{path}:1", remedy=remedy)
        return decode(line, RunSettings)
    except msgspec.DecodeError as error:
        remedy = "A run's trace stands beside it: RUN.trace.jsonl."
        raise InvalidInputError(f"is no trace ({error})", where=f"{path}:1", remedy=remedy) from error


def _decode_line(line: bytes, where: str) -> TraceLine:
    try:
        return decode(line, TraceLine)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"damaged line ({error})", where=where) from error


def resume_trace(path: Path, settings: RunSettings) -> Trace:
    """The trace to go on with: the one at `path` if it was made under the same settings, an empty one if there is none.

    In each topic, turns from the first at which the model failed on are answered again. Raises `UsageError` naming
    every setting that differs.
    """
    if not path.exists() or _is_empty_or_torn(path):
        return Trace(path, settings)
    found = read_trace(path)
    old, new = _flatten(asdict(found.settings)), _flatten(asdict(settings))
    if old.pop("processor") != new["processor"]:
        log.warning("%s was begun on another processor: what is answered now may differ (docs/reliability.md)", path)
    different = [f"  {name}: {old[name]!r} then, {new[name]!r} now" for name in old if old[name] != new[name]]
    if different:
        what = "\n".join(["was made under other settings, so it cannot be resumed:", *different])
        remedy = "Give --overwrite to start again, or go on with what it was begun with."
        raise UsageError(what, where=str(path), remedy=remedy)
    return replace(found, replies=dict(_finished_replies(found)))


def _finished_replies(trace: Trace) -> Iterator[tuple[str, str]]:
    broken: set[str] = set()  # topics
    for turn_id, reply in trace.replies.items():
        topic = turn_id.rpartition("_")[0]
        if turn_id in trace.without_model:
            broken.add(topic)
        if topic not in broken:
            yield turn_id, reply


def _is_empty_or_torn(path: Path) -> bool:
    """Nothing there, or cut off within the first line."""
    with path.open("rb") as file:
        first = file.readline()
    return not first.endswith(b"\n") and first[:1] in (b"", b"{")


def _flatten(value: object, name: str = "") -> dict[str, object]:
    """Every setting by its name, those of the plan too: `k`, `parts.answer`, `tuning.query.hyde_tokens`."""
    if not isinstance(value, dict):
        return {name.removeprefix("plan."): value}
    below = [_flatten(inner, f"{name}.{key}" if name else key) for key, inner in value.items()]
    return {name: setting for each in below for name, setting in each.items()}


@contextmanager
def open_for_append(trace: Trace) -> Iterator[IO[bytes]]:
    """The trace file opened to go on after what `trace` holds. Only one process at a time may write it."""
    remedy = "Wait for it, or give another name with --trace."
    with files.open_to_append(trace.path, trace.size, "trace", remedy) as file:
        if not trace.size:
            append_line(file, trace.settings)
            sync_to_disk(trace.path.parent)
        yield file


def append_line(file: IO[bytes], line: TraceLine | RunSettings) -> None:
    """Write one line and hand it to the disk."""
    remedy = "What was answered is kept. Make room, and the same command with --resume goes on."
    files.append_line(file, msgspec.json.encode(line), remedy)
