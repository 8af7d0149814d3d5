"""What is wrong or odd about the contents of a file: the one is an error that names it, the other is read all the same.

Of each kind that is odd one is kept, with its count and its first place.

Readers are lenient: other people's files are read wherever it is clear what they mean. What was odd is said by whoever
reads the file (`report_oddities`), and by `convagent validate`.
"""

import logging
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from schemas.errors import InvalidInputError
from schemas.records import Problem

log = logging.getLogger("convagent")
OddityKind = Literal["unknown field", "number as text", "id as number", "absent field", "no JSON"]
ALL_KINDS: tuple[OddityKind, ...] = get_args(OddityKind)


class Oddities:
    """The oddities of one file, in the order in which they first appear, each with its first place and its count."""

    def __init__(self) -> None:
        self._found: dict[tuple[OddityKind, str], tuple[str, int]] = {}

    def add(self, kind: OddityKind, what: str, where: str, count: int = 1) -> None:
        """Count one more of a kind. `where` is a JSON path or a line."""
        first, before = self._found.get((kind, what), (where, 0))
        self._found[kind, what] = first, before + count

    def list_problems(self, refused: Container[OddityKind] = ()) -> list[Problem]:
        """Each oddity at its first place: an error where its kind is refused, else a warning."""
        return [
            Problem(where, f"{what} ({count} times)" if count > 1 else what, "error" if kind in refused else "warning")
            for (kind, what), (where, count) in self._found.items()
        ]


def check_unique(names: Iterable[tuple[str, str]], problems: Sequence[Problem] = ()) -> None:
    """Raises `InvalidInputError` listing the names that stand more than once, with any other problems found."""
    if found := [*find_duplicates(names), *problems]:
        raise InvalidInputError("\n".join(map(str, found)))


def find_duplicates(names: Iterable[tuple[str, str]]) -> list[Problem]:
    """The names that stand more than once, each given with its kind, such as ("turn", "9-1_3")."""
    return [Problem(f"{kind} {name}", f"stands {n} times") for (kind, name), n in Counter(names).items() if n > 1]


@contextmanager
def locate_errors(path: Path) -> Iterator[None]:
    """Every `InvalidInputError` raised in the block names the file as its place."""
    try:
        yield
    except InvalidInputError as error:
        if error.where.startswith(str(path)):
            raise
        what = f"{error.where}: {error.what}" if error.where else error.what
        raise InvalidInputError(what, where=str(path), remedy=error.remedy) from error


@contextmanager
def report_oddities(path: Path) -> Iterator[Oddities]:
    """What collects the oddities of a file. They are logged at the end; errors raised in the block name the file."""
    oddities = Oddities()
    with locate_errors(path):
        yield oddities
    for problem in oddities.list_problems():
        log.warning("%s: %s", path, problem)
