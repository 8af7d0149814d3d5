"""Which files of a folder are documents, and why the others are not."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR, S_ISLNK

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


def list_documents(folder: Path, *, follow_links: bool = False) -> Listing:
    """The documents of a folder and its subfolders, or a single document. Hidden files and folders are skipped.

    Links that lead out of the folder are followed only if `follow_links`; a folder that is reached twice is read once.
    Raises `MissingError` where there is no such folder or file, `InvalidInputError` for a file that is no document.
    """
    if folder.is_dir():
        walk = _Walk(folder.resolve(), follow_links, {_identify_folder(folder)})
        found = list(walk.list_below(folder, ""))
        names = tuple(sorted(name for name, reason in found if not reason))
        skipped = [Problem(escape_name(name), reason) for name, reason in found if reason]
        if links := walk.left_out:
            others = f", as {'does' if len(links) == 2 else 'do'} {len(links) - 1} more" if len(links) > 1 else ""
            what = f"is a link that leads out of the folder and is not followed{others}; --follow-links reads them"
            skipped.append(Problem(escape_name(links[0]), what))
        return Listing(folder, names, tuple(skipped))
    if not folder.exists():
        raise MissingError("no such folder or file", where=str(folder))
    if not has_reader(folder):
        raise InvalidInputError(
            "is no document that can be read", where=str(folder), remedy=f"Expected {EXPECTED_SUFFIXES}."
        )
    return Listing(folder.parent, (folder.name,), ())


@dataclass(slots=True)
class _Walk:
    root: Path  # without links
    follow_links: bool
    seen: set[tuple[int, int]]  # folders
    left_out: list[str] = field(default_factory=list)  # links that lead out of the folder

    def list_below(self, folder: Path, above: str) -> Iterator[tuple[str, str]]:
        """The files below a folder, each with the reason why it is left out; "" for documents."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield above or str(folder), f"cannot be read ({error.strerror})"
            return
        for entry in entries:
            name = f"{above}/{entry.name}" if above else entry.name
            if not entry.name.startswith("."):
                yield from self._list_entry(Path(entry.path), name)

    def _list_entry(self, path: Path, name: str) -> Iterator[tuple[str, str]]:
        try:
            mode = path.lstat().st_mode
            if S_ISLNK(mode):
                if not path.exists():
                    yield name, "is a link to nothing"
                    return
                if not self.follow_links and not path.resolve().is_relative_to(self.root):
                    self.left_out.append(name)
                    return
                mode = path.stat().st_mode
            identity = _identify_folder(path) if S_ISDIR(mode) else (0, 0)
        except (OSError, RuntimeError) as error:  # of a loop of links
            yield name, f"cannot be read ({getattr(error, 'strerror', error)})"
            return
        if not S_ISDIR(mode):
            yield name, "" if has_reader(path) else f"is of no kind that can be read ({EXPECTED_SUFFIXES})"
        elif identity not in self.seen:
            self.seen.add(identity)
            yield from self.list_below(path, name)


def _identify_folder(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino
