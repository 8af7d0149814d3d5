"""Word files (.docx), rich text (.rtf) and electronic books (.epub) as passages.

Footnotes come last; comments, deleted text, headers, footers and pictures are left out. Rich text is read as plain text
is, a book chapter by chapter in reading order; links are not followed.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any
from urllib.parse import unquote

from indexes.documents.chunking import NOTES, Block, Chunk, Line, chunk_sections, format_table
from indexes.documents.document_reader import ChunkedDocument, decode_text, explain_faults, limit_notes, load_library
from indexes.documents.formats.markup import read_html_blocks
from indexes.documents.formats.plain_text import read_text_blocks
from indexes.documents.office.archives import Archive
from schemas.errors import InvalidInputError

MAX_MARKUP_BYTES = 20_000_000  # of its parts with text, unpacked: some thousand pages, which take a minute
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='Heading {level}'] => h{min(level + 1, 6)}:fresh" for level in range(1, 7)),
    ]
)
_LOOKS = ("word/theme/", "word/fontTable", "word/webSettings")  # parts that only say how things look
_REFERENCE = re.compile(r'<sup><a href="#(?:foot|end)note-\d+" id="(?:foot|end)note-ref-\d+">\[\d+\]</a></sup>')
_FIRST_NOTE = re.compile(r'<ol>(?=<li id="(?:foot|end)note-\d+">)')
_BACK = re.compile(r'<a href="#(?:foot|end)note-ref-\d+">↑</a>')


@explain_faults("Word file")
def chunk_docx(data: bytes) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are headings. Raises what `Archive` raises."""
    archive, mammoth = Archive(data, "Word file", MAX_MARKUP_BYTES), load_library("mammoth")
    title = archive.read_title("docProps/core.xml")
    made = mammoth.convert_to_html(
        archive.repack(_LOOKS), style_map=_STYLES, convert_image=lambda _image: [], external_file_access=False
    )
    notes_apart = _FIRST_NOTE.sub(f"<h2>{NOTES}</h2><ol>", _BACK.sub("", _REFERENCE.sub("", made.value)))
    _, blocks = read_html_blocks(notes_apart)
    return ChunkedDocument(title, tuple(chunk_sections(blocks)))


RICH_TEXT = "rich text file"
MAX_MARKUP_CHARACTERS = 10_000_000  # without pictures
MAX_FONT_CHARACTERS = 50_000  # of the table of fonts: it is read in time that grows with its square
_PICTURE = re.compile(r"[0-9a-fA-F\r\n]{500,}")
_FIELD = re.compile(r"(?=\{\\field)")
_END = re.compile(r"\n(?!\s*[-*•–·])")  # of a paragraph; the items of a list stay together
_LINK = re.compile("hyperlink", re.IGNORECASE)


def chunk_rtf(data: bytes) -> ChunkedDocument:
    """No title, and the passages, whose places are paragraphs, or the first line where it stands alone as a heading.

    Raises `InvalidInputError` for what is no rich text, is broken, or is too long.
    """
    if not data.lstrip().startswith(b"{\\rtf"):
        raise InvalidInputError(f"is no {RICH_TEXT}, whatever its name says")
    striprtf = load_library("striprtf.striprtf")
    markup = _PICTURE.sub("", data.decode("latin-1"))
    with explain_faults(RICH_TEXT):
        if len(markup) > MAX_MARKUP_CHARACTERS or len(striprtf.font_table_group(markup)) > MAX_FONT_CHARACTERS:
            raise InvalidInputError(f"is a {RICH_TEXT} that is too long; cut it into several files to have it read")
        # links as other fields, each on a line: the library looks for them in time that grows with a line's square
        text = striprtf.rtf_to_text(_LINK.sub("LINK", _FIELD.sub("\n", markup)), errors="replace")
    return ChunkedDocument(chunks=tuple(chunk_sections(_read_blocks(text))))


def _read_blocks(text: str) -> Iterator[Block]:
    """The text between tables as plain text is read, and the tables: each cell ends with a stroke."""
    headings: tuple[str, ...] = ()
    for is_table, lines in groupby(text.split("\n"), key=lambda line: line.rstrip().endswith("|")):
        if is_table:
            rows = [[Line(1, cell.strip()) for cell in line.rstrip().removesuffix("|").split("|")] for line in lines]
            yield Block(tuple(format_table(rows)), headings, prose=False)
        else:
            for block in read_text_blocks(_END.sub("\n\n", "\n".join(lines))):
                headings = block.headings or headings
                yield replace(block, headings=headings)


BOOK = "book (EPUB)"
MAX_BOOK_BYTES = 50_000_000  # of its chapters, unpacked
_ENCRYPTION = "META-INF/encryption.xml"


@explain_faults(BOOK)
def chunk_epub(data: bytes) -> ChunkedDocument:
    """The book's title, or "", and the passages, whose places are headings, or the number of a part without one.

    Raises what `Archive` raises. Chapters that cannot be read become notes.
    """
    archive = Archive(data, BOOK, MAX_BOOK_BYTES)
    containers = archive.read_xml("META-INF/container.xml").iterfind(".//{*}rootfile")
    package = next(str(found.get("full-path")) for found in containers)
    names = list(_list_chapters(archive.read_xml(package), posixpath.dirname(package)))
    title = archive.read_title(package)
    notes: list[str] = []
    chunks = tuple(_chunk_chapters(archive, names, notes))
    return ChunkedDocument(title, chunks, tuple(notes))


def _list_chapters(package: Any, folder: str) -> Iterator[str]:
    """The members with chapters, each once, in reading order."""
    hrefs = {item.get("id"): item.get("href", "") for item in package.iterfind(".//{*}item")}
    for id in dict.fromkeys(reference.get("idref") for reference in package.iterfind(".//{*}itemref")):
        if href := unquote(hrefs.get(id, "").partition("#")[0]):
            yield posixpath.normpath(posixpath.join(folder, href))


def _chunk_chapters(archive: Archive, names: list[str], notes: list[str]) -> Iterator[Chunk]:
    unread: list[str] = []
    locked = archive.read(_ENCRYPTION).decode("utf-8", "replace") if _ENCRYPTION in archive.names else ""
    for number, name in enumerate(names, start=1):
        if posixpath.basename(name) in locked:
            raise archive.make_encrypted_error()
        try:
            with explain_faults(BOOK):
                text, _ = decode_text(archive.read(name))
                _, blocks = read_html_blocks(text)
        except InvalidInputError as error:
            unread.append(f"part {number}: {error.what}")
        else:
            yield from chunk_sections(blocks, f"part{number}")
    notes += limit_notes(unread, "parts cannot be read")
