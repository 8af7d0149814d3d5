"""Answers judged one by one, each verdict kept as it comes: whoever is killed and begins again goes on.

The verdicts are kept beside the output, in `OUTPUT.partial`, after a line that says what decides them. A verdict counts
for the same answer to the same query with the same criteria alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from agent.tracks.oddities import Oddities
from indexes.storage.files import append_line, open_to_append, write_atomically
from schemas.errors import InvalidInputError, UsageError
from schemas.progress import StageProgress
from schemas.wire import decode

REMEDY = "What was judged is kept. Make room, and the same command goes on."


class Judged(Protocol):
    """An answer with what it is judged by: `AssignedAnswer`, `GradedAnswer`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def turn_id(self) -> str: ...
    @property
    def query(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def text(self) -> str: ...


J = TypeVar("J", bound=Judged)


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Everything that decides verdicts."""

    judge: str
    digest: str
    settings: str
    prompt: str  # SHA-256
    convagent: str


@dataclass(frozen=True, slots=True)
class Judge(Generic[J]):
    """Gives an answer its verdicts."""

    settings: JudgeSettings
    judge: Callable[[J], J]
    rough: str = ""  # why its verdicts are a rough proxy for a judge's; empty for a judge


@dataclass(frozen=True, slots=True)
class FileForm(Generic[J]):
    """How judged answers stand in a file."""

    encode: Callable[[J], bytes]
    decode: Callable[[bytes, Oddities], tuple[J, ...]]
    without_verdicts: Callable[[J], J]


def judge_answers(
    answers: Sequence[J], judge: Judge[J], form: FileForm[J], out: Path, progress: StageProgress, *, anew: bool = False
) -> list[J]:
    """Judge all answers and write them to `out`. Raises `ModelError` where the model fails; what is judged is kept.

    `anew` forgets what an interrupted process had judged.
    """
    path = out.with_name(f"{out.name}.partial")
    known, size = ({}, 0) if anew else _read_partial(path, judge.settings, form)
    judged: list[J] = []
    with open_to_append(path, size, "file", "Wait for it, or give another name with -o.") as file:
        if not size:
            append_line(file, msgspec.json.encode(judge.settings), REMEDY)
        with progress("judging", len(answers)) as tick:
            for answer in answers:
                verdict = known.get(answer)
                if verdict is None:
                    verdict = judge.judge(answer)
                    append_line(file, form.encode(verdict).rstrip(b"\n"), REMEDY)
                judged.append(verdict)
                tick(len(judged))
        write_atomically(out, map(form.encode, judged))
    path.unlink()
    return judged


def _read_partial(path: Path, settings: JudgeSettings, form: FileForm[J]) -> tuple[dict[J, J], int]:
    """The verdicts of an interrupted process, by the answer without them, and how many bytes hold whole lines."""
    if not path.exists():
        return {}, 0
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    head, _, lines = whole.partition(b"\n")
    if not head:
        return {}, 0
    try:
        before = decode(head, JudgeSettings)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no file of verdicts ({error})", where=str(path)) from error
    if before != settings:
        remedy = "--overwrite begins anew; -o gives another name."
        what = f"was begun by another judge, or with another prompt: {before.judge}"
        raise UsageError(what, where=str(path), remedy=remedy)
    return {form.without_verdicts(verdict): verdict for verdict in form.decode(lines, Oddities())}, len(whole)


def address(criteria: J, run: str, query: str, text: str) -> J:
    """What an answer of a run is judged by, with the answer."""
    return replace(criteria, run=run, query=criteria.query or query, text=text)
