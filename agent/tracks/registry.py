"""The editions that can be read and written: a line each. `edition.py` says what an edition is.

An edition's module is imported when it is asked for, so that the names alone cost the command line nothing.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from schemas.errors import UsageError

if TYPE_CHECKING:
    from agent.tracks.edition import Edition

# Name to module. A file is of the first edition that detects it: what is more particular stands first.
MODULES = {
    "qrecc": "agent.tracks.qrecc",
    "ikat-2025": "agent.tracks.ikat.ikat_2025",
    "ikat-2024": "agent.tracks.ikat.ikat_2024",
    "ikat-2023": "agent.tracks.ikat.ikat_2023",
}
EDITION_NAMES = tuple(sorted(MODULES))


def load_edition(name: str) -> "Edition":
    """The edition of that name. Raises `UsageError` listing those there are."""
    if name not in MODULES:
        raise UsageError(f"unknown format {name!r} (available: {', '.join(EDITION_NAMES)})")
    edition: Edition = import_module(MODULES[name]).EDITION
    return edition


def load_editions() -> Iterator["Edition"]:
    """All editions, in the order in which a file is tried on them."""
    return map(load_edition, MODULES)
