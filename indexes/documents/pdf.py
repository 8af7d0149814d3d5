"""PDF files (.pdf) as passages, page by page; pages that are pictures have no text."""

import io
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, end_with_full_stop
from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.text.segmentation import SentenceSplitter
from schemas.errors import InvalidInputError

MAX_PDF_BYTES = 200_000_000  # of a file; a larger one is left out
MIN_FULL_LINE = 0.6  # share of a page's widest line; a shorter line ends a paragraph
_HYPHEN_AT_END = re.compile(r"(?<=[^\W\d_])[-\u00ad]$")


def chunk_pdf(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The title in a PDF's metadata, or "", and its passages, whose places are pages: `p3`.

    Raises `InvalidInputError` for a PDF that is encrypted or broken, or has no text.
    """
    title, pages = _extract_pages(data)
    chunks = tuple(chunk for number, text in enumerate(pages, start=1) for chunk in _chunk_page(number, text, split))
    if not chunks:
        raise InvalidInputError("is a PDF without text (pages that are pictures have to go through OCR first)")
    return ChunkedDocument(" ".join(title.split()), chunks)


def _extract_pages(data: bytes) -> tuple[str, list[str]]:
    """The title and the text of each page."""
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every fault that it recovers from
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _decrypt_without_password(reader):
            raise InvalidInputError("is an encrypted PDF; save a copy without its password to have it read")
        pages = [page.extract_text() for page in reader.pages]
        return str((reader.metadata and reader.metadata.title) or ""), pages
    except InvalidInputError:
        raise
    except Exception as error:  # what pypdf raises for broken files has no common base
        raise InvalidInputError(f"is a broken PDF ({error})") from error


def _decrypt_without_password(reader: Any) -> bool:
    """Try the empty password, which opens a PDF that only forbids printing or changing. Whether it did."""
    from pypdf.errors import DependencyError

    try:
        return bool(reader.decrypt(""))
    except DependencyError:
        return False


def _chunk_page(number: int, text: str, split: SentenceSplitter) -> Iterator[Chunk]:
    paragraphs = _split_paragraphs(text.split("\n"))
    blocks = [Block(tuple(Line(number, line) for line in paragraph)) for paragraph in paragraphs]
    return (Chunk(f"p{number}", chunk.text) for chunk in chunk_blocks(blocks, split))


def _split_paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    """A page's paragraphs: an empty or a short line ends one. Words broken at the end of a line are joined again."""
    full = MIN_FULL_LINE * max(map(len, lines), default=0)
    paragraph: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        text, follows = line.strip(), after.strip()
        if paragraph and _HYPHEN_AT_END.search(paragraph[-1]) and text[:1].islower():
            paragraph[-1] = _HYPHEN_AT_END.sub("", paragraph[-1]) + text
        elif text:
            paragraph.append(text)
        if paragraph and (not follows or (len(line) < full and not follows[0].islower())):
            paragraph[-1] = end_with_full_stop(paragraph[-1])
            yield paragraph
            paragraph = []


def build_page_fragment(place: str) -> str:
    """The page of `p3` as PDF viewers are told it: `#page=3`."""
    return f"#page={place.removeprefix('p')}"


READER = DocumentReader((".pdf",), chunk_pdf, max_bytes=MAX_PDF_BYTES, place_fragment=build_page_fragment)
