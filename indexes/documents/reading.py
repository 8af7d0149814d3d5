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

from indexes.documents.chunking import Chunk, chunk_blocks
from indexes.documents.decoding import decode_text
from indexes.documents.html import read_html_blocks
from indexes.documents.json_files import chunk_json, chunk_json_lines
from indexes.documents.passage_ids import printable_name
from indexes.documents.pdf import chunk_pdf
from indexes.documents.tables import read_table_rows
from indexes.documents.text_and_markdown import find_title, read_markdown_blocks, read_text_blocks
from indexes.text.control_characters import strip_control_characters
from indexes.text.segmentation import SentenceSplitter
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Passage

KINDS = {".txt": "text", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".csv": "table"}
KINDS |= {".json": "tree", ".jsonl": "lines", ".pdf": "pdf"}
EXPECTED = ", ".join(kind.removeprefix(".") for kind in KINDS)
TEXT_BYTES, PDF_BYTES = 50_000_000, 200_000_000  # of a file; a larger one is left out


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells without reading whether a file is as it was."""

    size: int  # bytes
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class FileContents:
    """A file's bytes, and its stamp from before they were read."""

    stamp: FileStamp
    data: bytes
    changed: bool  # while they were read

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, as hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a file says. Without passages, `reason` says why it is left out; `notes` are oddities of one that is not."""

    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""


def read_stamp(path: Path) -> FileStamp:
    """A file's stamp. Raises `MissingError` for one that is not there or cannot be looked at."""
    try:
        return _to_stamp(path.stat())
    except OSError as error:
        raise _unreadable_error(error) from error


def read_contents(path: Path) -> FileContents:
    """A file's bytes, if there are not too many.

    Raises `MissingError` for a file that is not there or cannot be read, `InvalidInputError` for one that is too large
    (nothing is read of it) or no plain file.
    """
    most = PDF_BYTES if path.suffix.lower() == ".pdf" else TEXT_BYTES
    try:
        if not S_ISREG(path.stat().st_mode):  # before it is opened: to open a pipe is to wait
            raise InvalidInputError("is no plain file")
        with path.open("rb") as file:
            before = _to_stamp(os.fstat(file.fileno()))
            data = file.read(most + 1) if before.size <= most else b""
            after = _to_stamp(os.fstat(file.fileno()))
    except OSError as error:
        raise _unreadable_error(error) from error
    if max(before.size, len(data)) > most:
        raise InvalidInputError(f"is larger than {most // 1_000_000} MB; cut it into several files to have it read")
    return FileContents(before, data, changed=before != after)


def _to_stamp(found: os.stat_result) -> FileStamp:
    return FileStamp(found.st_size, found.st_mtime_ns)


def _unreadable_error(error: OSError) -> MissingError:
    gone = isinstance(error, FileNotFoundError)
    return MissingError("went away before it was read" if gone else f"cannot be read ({error.strerror})")


def parse_document(path: Path, name: str, data: bytes, split: SentenceSplitter) -> ParsedDocument:
    """The passages of a file's bytes. `name` is the file's below its folder, as ids have it.

    Never raises for what is wrong with the bytes: that is the reason to leave the file out.
    """
    notes: list[str] = []
    try:
        title, found = _chunk_by_kind(path.suffix.lower(), data, split, notes)
        passages = tuple(_to_passages(found, path, name, title))
    except InvalidInputError as error:
        return ParsedDocument(reason=error.what)
    if not passages:
        return ParsedDocument(reason="; ".join(["holds no text" if data else "is empty", *notes]))
    return ParsedDocument(passages, tuple(notes))


def _chunk_by_kind(suffix: str, data: bytes, split: SentenceSplitter, notes: list[str]) -> tuple[str, Iterable[Chunk]]:
    """The title that a document gives itself, or "", and its parts. What is odd about it is added to `notes`."""
    kind = KINDS[suffix]
    if kind == "pdf" and data:
        return chunk_pdf(data, split)
    text, guessed = decode_text(data)
    if guessed:
        notes.append(f"is not UTF-8; read as {guessed}, which is a guess")
    if not text.strip():
        return "", ()
    if kind == "tree":
        return "", chunk_json(text, split)
    if kind == "lines":
        return "", chunk_json_lines(text, split, notes)
    if kind == "table":
        return "", (part for row in read_table_rows(text, notes) for part in chunk_blocks([row], split))
    if kind == "html":
        title, blocks = read_html_blocks(text)
        return title, chunk_blocks(blocks, split)
    if kind == "markdown":
        return find_title(text), chunk_blocks(read_markdown_blocks(text), split)
    return "", chunk_blocks(read_text_blocks(text), split)


def _to_passages(found: Iterable[Chunk], path: Path, name: str, title: str) -> Iterator[Passage]:
    """Passages with ids and titles. What is in the same place as another is its second passage: `p3`, `p3.2`."""
    times: Counter[str] = Counter()
    uri = path.absolute().as_uri()
    data = KINDS[path.suffix.lower()] in ("tree", "table")
    for part in found:
        text = _clean_text(part.text)
        if not re.search(r"\w", text):
            continue
        times[part.place] += 1
        place = f"{part.place}.{times[part.place]}" if times[part.place] > 1 else part.place
        called = title or (printable_name(path.name) if data or not part.headings else "")
        headings = [heading for heading in part.headings if heading not in title]
        heading = ": ".join([called, *headings] if called else headings)
        where = f"#page={part.place[1:]}" if path.suffix.lower() == ".pdf" else ""
        yield Passage(f"{name}:{place}", text, _clean_text(heading), uri + where)


def _clean_text(text: str) -> str:
    """Text that can be written as UTF-8, without the characters that steer a terminal."""
    return strip_control_characters(text).encode("utf-8", "replace").decode("utf-8").strip()
