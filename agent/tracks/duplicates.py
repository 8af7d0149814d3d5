"""Finds names that stand more than once in a file."""

from collections import Counter
from collections.abc import Iterable, Sequence

from schemas.errors import InvalidInputError
from schemas.records import Problem


def check_unique(names: Iterable[tuple[str, str]], problems: Sequence[Problem] = ()) -> None:
    """Raises `InvalidInputError` listing the names that stand more than once, with any other problems found."""
    if found := [*find_duplicates(names), *problems]:
        raise InvalidInputError("\n".join(map(str, found)))


def find_duplicates(names: Iterable[tuple[str, str]]) -> list[Problem]:
    """The names that stand more than once, each given with its kind, such as ("turn", "9-1_3")."""
    return [Problem(f"{kind} {name}", f"stands {n} times") for (kind, name), n in Counter(names).items() if n > 1]
