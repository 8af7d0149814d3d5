"""A person's own files as passages: text, Markdown, HTML, tables, JSON and PDF, each cut as it is made.

`folder.py` finds the files, `store.py` keeps what was read of them.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from indexes.documents.cutting import Part, parts
from indexes.documents.decoding import decoded
from indexes.documents.html import html_blocks
from indexes.documents.names import written
from indexes.documents.pdf import pdf_parts
from indexes.documents.prose import markdown_blocks, text_blocks, title_of
from indexes.documents.tables import table_rows
from indexes.documents.trees import line_parts, tree_parts
from indexes.plain import plain_text
from indexes.segments import Split
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Passage

KINDS = {".txt": "text", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".csv": "table"}
KINDS |= {".json": "tree", ".jsonl": "lines", ".pdf": "pdf"}
EXPECTED = ", ".join(kind.removeprefix(".") for kind in KINDS)
TEXT_BYTES, PDF_BYTES = 50_000_000, 200_000_000  # of a file; a larger one is left out


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells without reading whether a file is as it was."""

    size: int  # bytes
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Contents:
    """A file's bytes, and its stamp from before they were read."""

    stamp: Stamp
    data: bytes
    changed: bool  # while they were read

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, as hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file says. Without passages, `reason` says why it is left out; `notes` are oddities of one that is not."""

    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""


def read_stamp(path: Path) -> Stamp:
    """A file's stamp. Raises `MissingError` for one that is not there or cannot be looked at."""
    try:
        return _stamp(path.stat())
    except OSError as error:
        raise _unreadable(error) from error


def read_contents(path: Path) -> Contents:
    """A file's bytes, if there are not too many.

    Raises `MissingError` for a file that is not there or cannot be read, `InvalidInputError` for one that is too large
    (nothing is read of it) or no plain file.
    """
    most = PDF_BYTES if path.suffix.lower() == ".pdf" else TEXT_BYTES
    try:
        if not S_ISREG(path.stat().st_mode):  # before it is opened: to open a pipe is to wait
            raise InvalidInputError("is no plain file")
        with path.open("rb") as file:
            before = _stamp(os.fstat(file.fileno()))
            data = file.read(most + 1) if before.size <= most else b""
            after = _stamp(os.fstat(file.fileno()))
    except OSError as error:
        raise _unreadable(error) from error
    if max(before.size, len(data)) > most:
        raise InvalidInputError(f"is larger than {most // 1_000_000} MB; cut it into several files to have it read")
    return Contents(before, data, changed=before != after)


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, found.st_mtime_ns)


def _unreadable(error: OSError) -> MissingError:
    gone = isinstance(error, FileNotFoundError)
    return MissingError("went away before it was read" if gone else f"cannot be read ({error.strerror})")


def parse(path: Path, name: str, data: bytes, split: Split) -> Parsed:
    """The passages of a file's bytes. `name` is the file's below its folder, as ids have it.

    Never raises for what is wrong with the bytes: that is the reason to leave the file out.
    """
    notes: list[str] = []
    try:
        title, found = _read(path.suffix.lower(), data, split, notes)
        passages = tuple(_passages(found, path, name, title))
    except InvalidInputError as error:
        return Parsed(reason=error.what)
    if not passages:
        return Parsed(reason="; ".join(["holds no text" if data else "is empty", *notes]))
    return Parsed(passages, tuple(notes))


def _read(suffix: str, data: bytes, split: Split, notes: list[str]) -> tuple[str, Iterable[Part]]:
    """The title that a document gives itself, or "", and its parts. What is odd about it is added to `notes`."""
    kind = KINDS[suffix]
    if kind == "pdf" and data:
        return pdf_parts(data, split)
    text, guessed = decoded(data)
    if guessed:
        notes.append(f"is not UTF-8; read as {guessed}, which is a guess")
    if not text.strip():
        return "", ()
    if kind == "tree":
        return "", tree_parts(text, split)
    if kind == "lines":
        return "", line_parts(text, split, notes)
    if kind == "table":
        return "", (part for row in table_rows(text, notes) for part in parts([row], split))
    if kind == "html":
        title, blocks = html_blocks(text)
        return title, parts(blocks, split)
    if kind == "markdown":
        return title_of(text), parts(markdown_blocks(text), split)
    return "", parts(text_blocks(text), split)


def _passages(found: Iterable[Part], path: Path, name: str, title: str) -> Iterator[Passage]:
    """Passages with ids and titles. What is in the same place as another is its second passage: `p3`, `p3.2`."""
    times: Counter[str] = Counter()
    uri = path.absolute().as_uri()
    data = KINDS[path.suffix.lower()] in ("tree", "table")
    for part in found:
        text = _clean(part.text)
        if not re.search(r"\w", text):
            continue
        times[part.place] += 1
        place = f"{part.place}.{times[part.place]}" if times[part.place] > 1 else part.place
        called = title or (written(path.name) if data or not part.headings else "")
        headings = [heading for heading in part.headings if heading not in title]
        heading = ": ".join([called, *headings] if called else headings)
        where = f"#page={part.place[1:]}" if path.suffix.lower() == ".pdf" else ""
        yield Passage(f"{name}:{place}", text, _clean(heading), uri + where)


def _clean(text: str) -> str:
    """Text that can be written as UTF-8, without the characters that steer a terminal."""
    return plain_text(text).encode("utf-8", "replace").decode("utf-8").strip()
