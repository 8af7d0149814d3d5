"""JSON as it is read from a file, and errors about the contents of a file that name it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Problem
from schemas.wire import decode


def check_unique(names: Iterable[tuple[str, str]], problems: Sequence[Problem] = ()) -> None:
    """Raises `InvalidInputError` listing the names that stand more than once, with any other problems found."""
    if found := [*find_duplicates(names), *problems]:
        raise InvalidInputError("\n".join(map(str, found)))


def find_duplicates(names: Iterable[tuple[str, str]]) -> list[Problem]:
    """The names that stand more than once, each given with its kind, such as ("turn", "9-1_3")."""
    return [Problem(f"{kind} {name}", f"stands {n} times") for (kind, name), n in Counter(names).items() if n > 1]


def decode_file(path: Path, remedy: str) -> Any:
    """The contents of a JSON file. Raises `InvalidInputError`, with this remedy, where it is not JSON."""
    data = read_utf8(path)
    try:
        return decode(data)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is not JSON ({error})", where=str(path), remedy=remedy) from error


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
