"""Electronic books (.epub) as passages, chapter by chapter in reading order. Links are not followed."""

import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from indexes.documents.chunking import Chunk, chunk_sections
from indexes.documents.document_reader import ChunkedDocument, decode_text, explain_faults, limit_notes
from indexes.documents.formats.html import read_html_blocks
from indexes.documents.office.archives import Archive
from schemas.errors import InvalidInputError

KIND = "book (EPUB)"
MAX_BOOK_BYTES = 50_000_000  # of its chapters, unpacked
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"


def chunk_epub(data: bytes) -> ChunkedDocument:
    """The book's title, or "", and the passages, whose places are headings, or the number of a part without one.

    Raises what `Archive` raises. Chapters that cannot be read become notes.
    """
    archive = Archive(data, KIND, MAX_BOOK_BYTES)
    with explain_faults(KIND):
        containers = archive.read_xml(_CONTAINER).iterfind(".//{*}rootfile")
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
            text, _ = decode_text(archive.read(name))
            _, blocks = read_html_blocks(text)
        except InvalidInputError as error:
            unread.append(f"part {number}: {error.what}")
        else:
            yield from chunk_sections(blocks, f"part{number}")
    notes += limit_notes(unread, "parts cannot be read")
