"""What is odd about a file and is read all the same: each kind is kept once, with its count and its first place.

Readers are lenient: other people's files are read wherever it is clear what they mean. What was odd is said by whoever
reads the file (`report_oddities`), and by `convagent validate`.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.tracks.json_files import locate_errors
from schemas.records import Problem

log = logging.getLogger("convagent")
OddityKind = Literal["unknown field", "number as text", "id as number", "absent field", "no JSON", "turn id"]


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something odd that stands `count` times in a file, first at `where` (a JSON path or a line)."""

    kind: OddityKind
    what: str
    where: str
    count: int = 1

    def __str__(self) -> str:
        times = f"{self.count} times, first" if self.count > 1 else "once,"
        return f"{self.what} ({times} at {self.where})"

    def to_problem(self, *, is_error: bool) -> Problem:
        """The oddity at its first place."""
        times = f" ({self.count} times)" if self.count > 1 else ""
        return Problem(self.where, f"{self.what}{times}", "error" if is_error else "warning")


class Oddities:
    """The oddities of one file, in the order in which they first appear."""

    def __init__(self) -> None:
        self._found: dict[tuple[OddityKind, str], Oddity] = {}

    def add(self, kind: OddityKind, what: str, where: str, count: int = 1) -> None:
        """Count one more of a kind."""
        before = self._found.get((kind, what), Oddity(kind, what, where, 0))
        self._found[kind, what] = replace(before, count=before.count + count)

    def __iter__(self) -> Iterator[Oddity]:
        return iter(tuple(self._found.values()))


@contextmanager
def report_oddities(path: Path) -> Iterator[Oddities]:
    """What collects the oddities of a file. They are logged at the end; errors raised in the block name the file."""
    oddities = Oddities()
    with locate_errors(path):
        yield oddities
    for oddity in oddities:
        log.warning("%s: %s", path, oddity)
