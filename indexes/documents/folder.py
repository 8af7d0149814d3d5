"""Which files of a folder are documents, and why the others are not."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from indexes.documents.passage_ids import printable_name
from indexes.documents.reading import EXPECTED, KINDS
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Problem


@dataclass(frozen=True, slots=True)
class Listing:
    """The documents below `root`, by their names below it ("recipes/bread.md"), in name order, and what is left out."""

    root: Path
    names: tuple[str, ...]
    skipped: tuple[Problem, ...]


def list_documents(folder: Path) -> Listing:
    """The documents of a folder and the folders in it, or a single one. Hidden files and folders are not looked at.

    Links are followed; a folder that is reached twice is looked at once. Raises `MissingError` where there is no such
    folder or file, `InvalidInputError` for a file of another kind.
    """
    if folder.is_dir():
        found = list(_list_below(folder, "", {_identity(folder)}))
        names = tuple(sorted(name for name, reason in found if not reason))
        return Listing(folder, names, tuple(Problem(printable_name(name), reason) for name, reason in found if reason))
    if not folder.exists():
        raise MissingError("no such folder or file", where=str(folder))
    if folder.suffix.lower() not in KINDS:
        raise InvalidInputError("is no document that can be read", where=str(folder), remedy=f"Expected {EXPECTED}.")
    return Listing(folder.parent, (folder.name,), ())


def _list_below(folder: Path, above: str, seen: set[tuple[int, int]]) -> Iterator[tuple[str, str]]:
    """Names with the reason why each is left out, "" for documents."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield above or str(folder), f"cannot be read ({error.strerror})"
        return
    for entry in entries:
        name = f"{above}/{entry.name}" if above else entry.name
        if not entry.name.startswith("."):
            yield from _list_entry(Path(entry.path), name, seen)


def _list_entry(path: Path, name: str, seen: set[tuple[int, int]]) -> Iterator[tuple[str, str]]:
    try:
        is_folder = path.is_dir()
        missing = path.is_symlink() and not path.exists()
        identity = _identity(path) if is_folder else (0, 0)
    except OSError as error:
        yield name, f"cannot be read ({error.strerror})"
        return
    if is_folder and identity not in seen:
        seen.add(identity)
        yield from _list_below(path, name, seen)
    elif not is_folder:
        other = "" if path.suffix.lower() in KINDS else f"is of no kind that can be read ({EXPECTED})"
        yield name, "is a link to nothing" if missing else other


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino
