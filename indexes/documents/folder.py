"""Which files of a folder are documents, and why the others are not."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from indexes.documents.passage_ids import escape_name
from indexes.documents.readers import EXPECTED_SUFFIXES, has_reader
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Problem


@dataclass(frozen=True, slots=True)
class Listing:
    """The documents below `root`, by their paths below it ("recipes/bread.md") in order, and the files left out."""

    root: Path
    names: tuple[str, ...]
    skipped: tuple[Problem, ...]


def list_documents(folder: Path) -> Listing:
    """The documents of a folder and its subfolders, or a single document. Hidden files and folders are skipped.

    Links are followed; a folder that is reached twice is read once. Raises `MissingError` where there is no such
    folder or file, `InvalidInputError` for a file that is no document.
    """
    if folder.is_dir():
        found = list(_list_below(folder, "", {_identify_folder(folder)}))
        names = tuple(sorted(name for name, reason in found if not reason))
        return Listing(folder, names, tuple(Problem(escape_name(name), reason) for name, reason in found if reason))
    if not folder.exists():
        raise MissingError("no such folder or file", where=str(folder))
    if not has_reader(folder):
        raise InvalidInputError(
            "is no document that can be read", where=str(folder), remedy=f"Expected {EXPECTED_SUFFIXES}."
        )
    return Listing(folder.parent, (folder.name,), ())


def _list_below(folder: Path, above: str, seen: set[tuple[int, int]]) -> Iterator[tuple[str, str]]:
    """The files below a folder, each with the reason why it is left out; "" for documents."""
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
        identity = _identify_folder(path) if is_folder else (0, 0)
    except OSError as error:
        yield name, f"cannot be read ({error.strerror})"
        return
    if is_folder and identity not in seen:
        seen.add(identity)
        yield from _list_below(path, name, seen)
    elif not is_folder:
        yield name, "is a link to nothing" if missing else _explain_unknown_type(path)


def _explain_unknown_type(path: Path) -> str:
    return "" if has_reader(path) else f"is of no kind that can be read ({EXPECTED_SUFFIXES})"


def _identify_folder(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino
