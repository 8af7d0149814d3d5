"""Reading a person's own files: bytes from the disk, and passages with ids and titles from the bytes.

`READERS` lists the types: to add one, write a module with a function that reads it and list it here.
`document_index.py` finds the files, `parse_cache.py` keeps the passages.
"""

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from stat import S_ISREG

from indexes.documents.chunking import MAX_LABEL_CHARACTERS, escape_name, shorten_label, shorten_place
from indexes.documents.document_reader import ChunkedDocument, ReadDocument, read_as_text
from indexes.documents.formats.data_files import chunk_json, chunk_json_lines, chunk_table
from indexes.documents.formats.markup import chunk_html, chunk_markdown
from indexes.documents.formats.pages import chunk_image, chunk_pdf
from indexes.documents.formats.plain_text import chunk_text
from indexes.documents.office.mail import chunk_eml, chunk_mbox
from indexes.documents.office.open_document import chunk_odp, chunk_ods, chunk_odt
from indexes.documents.office.sheets import chunk_xlsx
from indexes.documents.office.slides import chunk_pptx
from indexes.documents.office.texts import chunk_docx, chunk_epub, chunk_rtf
from indexes.text.analysis import ENGLISH
from indexes.text.control_characters import strip_control_characters
from indexes.text.dates import read_date
from indexes.text.languages import find_document_language
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Passage

MAX_BYTES, MAX_PACKED_BYTES = 50_000_000, 200_000_000  # of a file, and of one with more than text; a larger is left out


@dataclass(frozen=True, slots=True)
class DocumentReader:
    suffixes: tuple[str, ...]  # of its files, in lower case, with the dot
    read: ReadDocument
    max_bytes: int = MAX_BYTES
    is_data: bool = False  # whether passages are titled with the file's name even where they have headings
    fragment: str = ""  # of the URI of a file whose viewers can go to a page: "#page={}"


READERS = (
    DocumentReader((".txt",), read_as_text(chunk_text)),
    DocumentReader((".md", ".markdown"), read_as_text(chunk_markdown)),
    DocumentReader((".html", ".htm"), read_as_text(chunk_html)),
    DocumentReader((".csv",), read_as_text(chunk_table), is_data=True),
    DocumentReader((".json",), read_as_text(chunk_json), is_data=True),
    DocumentReader((".jsonl",), read_as_text(chunk_json_lines)),
    DocumentReader((".pdf",), chunk_pdf, MAX_PACKED_BYTES, fragment="#page={}"),
    DocumentReader((".docx",), chunk_docx, MAX_PACKED_BYTES),
    DocumentReader((".odt",), chunk_odt, MAX_PACKED_BYTES),
    DocumentReader((".rtf",), chunk_rtf),
    DocumentReader((".epub",), chunk_epub, MAX_PACKED_BYTES),
    DocumentReader((".pptx",), chunk_pptx, MAX_PACKED_BYTES),
    DocumentReader((".odp",), chunk_odp, MAX_PACKED_BYTES),
    DocumentReader((".xlsx",), chunk_xlsx, MAX_PACKED_BYTES, is_data=True),
    DocumentReader((".ods",), chunk_ods, MAX_PACKED_BYTES, is_data=True),
    DocumentReader((".eml",), chunk_eml),
    DocumentReader((".mbox",), chunk_mbox, MAX_PACKED_BYTES),
    DocumentReader((".png", ".jpg", ".jpeg", ".tif", ".tiff"), chunk_image),
)
READER_BY_SUFFIX = {suffix: reader for reader in READERS for suffix in reader.suffixes}
EXPECTED_SUFFIXES = ", ".join(suffix.removeprefix(".") for suffix in READER_BY_SUFFIX)  # for messages
MAX_ID_CHARACTERS = 950  # an index refuses an id of more than a thousand; numbers may be added
MAX_NAME_CHARACTERS = 800  # of a path below the folder
SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system that is in use (FAT)


def has_reader(path: Path) -> bool:
    """Whether a file is of a type that can be read, by the suffix of its name."""
    return path.suffix.lower() in READER_BY_SUFFIX


# What shows, without reading it, that a file has not changed: its bytes, when it was changed, when its bytes, name or
# owner were (which programs cannot set), and its inode.
FileStamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file as it was read."""

    stamp: FileStamp
    digest: str  # SHA-256 of its bytes
    is_settled: bool  # whether the same stamp means the same bytes: clocks are coarse, so not right after a change


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What came of a file: its passages, or the reason why it has none."""

    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()  # oddities of a file that has passages
    reason: str = ""  # why a file is left out; "" for one with passages
    lacks_ocr: bool = False  # whether more would be read if Tesseract were installed
    broke_reader: bool = False  # whether it is left out because its reader took too long, took too much, or failed

    @property
    def language(self) -> str:
        return self.passages[0].language if self.passages else ENGLISH


def read_stamp(path: Path) -> FileStamp:
    """A file's stamp. Raises `MissingError` where the file is not there or may not be looked at."""
    try:
        return _to_stamp(path.stat())
    except OSError as error:
        raise _unreadable_error(error) from error


def read_contents(path: Path) -> tuple[FileVersion, bytes, bool]:
    """A document's version and bytes, and whether it changed while it was read.

    Raises `MissingError` for a file that is not there or cannot be read, and `InvalidInputError` for one that is no
    plain file, or larger than its reader allows (then nothing is read of it). Neither says where.
    """
    most = READER_BY_SUFFIX[path.suffix.lower()].max_bytes
    try:
        _require_plain_file(path.stat())  # before it is opened: a device might do something
        now = time.time_ns()
        # without waiting: it may have become a pipe meanwhile
        with open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            _require_plain_file(found)
            before = _to_stamp(found)
            data = file.read(most + 1) if found.st_size <= most else b""
            after = _to_stamp(os.fstat(file.fileno()))
    except OSError as error:
        raise _unreadable_error(error) from error
    if max(found.st_size, len(data)) > most:
        raise InvalidInputError(f"is larger than {most // 1_000_000} MB; cut it into several files to have it read")
    is_settled = max(found.st_mtime_ns, found.st_ctime_ns) < now - SETTLED_NS
    return FileVersion(before, hashlib.sha256(data).hexdigest(), is_settled), data, before != after


def _require_plain_file(found: os.stat_result) -> None:
    if not S_ISREG(found.st_mode):
        raise InvalidInputError("is no plain file")


def _to_stamp(found: os.stat_result) -> FileStamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _unreadable_error(error: OSError) -> MissingError:
    gone = isinstance(error, FileNotFoundError)
    return MissingError("went away before it was read" if gone else f"cannot be read ({error.strerror})")


def parse_document(path: Path, name: str, data: bytes) -> ParsedDocument:
    """The passages of a document's bytes. `name` is its path below the folder, as ids have it.

    Never raises for faults of the bytes: they are the reason why the file is left out. Raises `MissingError` where a
    library for the type is not installed.
    """
    if not data:
        return ParsedDocument(reason="is empty")
    if len(name) > MAX_NAME_CHARACTERS:
        return ParsedDocument(reason=f"has a path of more than {MAX_NAME_CHARACTERS} characters below the folder")
    try:
        reader = READER_BY_SUFFIX[path.suffix.lower()]
        document = reader.read(data)
    except InvalidInputError as error:
        return ParsedDocument(reason=error.what)
    passages = tuple(_to_passages(document, path, name, reader))
    if not passages:
        return ParsedDocument(reason="; ".join(["holds no text", *document.notes]), lacks_ocr=document.lacks_ocr)
    language = find_document_language(f"{passage.title} {passage.text}" for passage in passages)
    if language != ENGLISH:
        passages = tuple(replace(passage, language=language) for passage in passages)
    return ParsedDocument(passages, document.notes, lacks_ocr=document.lacks_ocr)


def _to_passages(document: ChunkedDocument, path: Path, name: str, reader: DocumentReader) -> Iterator[Passage]:
    """Passages with ids, titles and URIs. Where several have the same place they are numbered: `p3`, `p3.2`.

    A title is the document's, or else the file's name, then the headings that the title does not have.
    """
    times: Counter[str] = Counter()
    room = min(MAX_ID_CHARACTERS - len(name), MAX_LABEL_CHARACTERS)
    uri = path.absolute().as_uri()
    date = read_date(name) or read_date(document.title)
    for chunk in document.chunks:
        text = _clean_text(chunk.text)
        if not re.search(r"\w", text):
            continue
        place = _number_place(shorten_place(chunk.place, room), times)
        file_name = escape_name(path.name) if reader.is_data or not chunk.headings else ""
        own_title = shorten_label(document.title)
        headings = [short for heading in chunk.headings if (short := shorten_label(heading)) not in own_title]
        title = _clean_text(": ".join(part for part in (own_title or file_name, *headings) if part))
        found = Passage(f"{name}:{place}", text, title, uri + reader.fragment.format(chunk.place.removeprefix("p")))
        # a mark where place or headings change; none where they never do
        marks = [next(same) for _, same in groupby(chunk.marks, key=lambda mark: (mark.place, mark.headings))]
        yield replace(found, date=chunk.date or date, marks=tuple(marks) if len(marks) > 1 else ())


def _number_place(place: str, times: Counter[str]) -> str:
    """`p3` the first time, then `p3.2`, `p3.3`; what another place is called already is left out."""
    numbered = place
    while times[numbered]:
        times[place] += 1
        numbered = f"{place}.{times[place]}"
    times[numbered] = 1
    return numbered


def _clean_text(text: str) -> str:
    """The text without control characters and without what cannot be written as UTF-8."""
    return strip_control_characters(text).encode("utf-8", "replace").decode("utf-8").strip()
