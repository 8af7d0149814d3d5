"""PDFs, page by page; pages that are pictures have no text."""

import io
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, end_with_full_stop
from indexes.text.segmentation import SentenceSplitter
from schemas.errors import InvalidInputError

FULL = 0.6  # share of a page's widest line from which a line is full: a shorter one ends a paragraph
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-\u00ad]$")


def chunk_pdf(data: bytes, split: SentenceSplitter) -> tuple[str, list[Chunk]]:
    """The title that a PDF gives itself, or "", and its passages, their places pages: `p3`.

    Raises `InvalidInputError` for a PDF that is encrypted or broken, or has no text.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells every fault that it gets over
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _open_pdf(reader):
            raise InvalidInputError("is an encrypted PDF; save a copy without its password to have it read")
        pages = [page.extract_text() for page in reader.pages]
        title = str((reader.metadata and reader.metadata.title) or "")
    except InvalidInputError:
        raise
    except Exception as error:  # what pypdf raises for broken files has no common base
        raise InvalidInputError(f"is a broken PDF ({error})") from error
    found = [part for number, text in enumerate(pages, start=1) for part in _chunk_page(number, text, split)]
    if not found:
        raise InvalidInputError("is a PDF without text (pages that are pictures have to go through OCR first)")
    return " ".join(title.split()), found


def _open_pdf(reader: Any) -> bool:
    """Whether the empty password opens it, as it does where printing or changing alone is forbidden."""
    from pypdf.errors import DependencyError

    try:
        return bool(reader.decrypt(""))
    except DependencyError:
        return False


def _chunk_page(number: int, text: str, split: SentenceSplitter) -> Iterator[Chunk]:
    blocks = [
        Block(tuple(Line(number, line) for line in paragraph)) for paragraph in _split_paragraphs(text.split("\n"))
    ]
    return (Chunk(f"p{number}", part.text) for part in chunk_blocks(blocks, split))


def _split_paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    """A page's paragraphs: an empty or a short line ends one. Words broken at the end of a line are whole again."""
    full = FULL * max(map(len, lines), default=0)
    paragraph: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        text, follows = line.strip(), after.strip()
        if paragraph and _BROKEN_WORD.search(paragraph[-1]) and text[:1].islower():
            paragraph[-1] = _BROKEN_WORD.sub("", paragraph[-1]) + text
        elif text:
            paragraph.append(text)
        if paragraph and (not follows or (len(line) < full and not follows[0].islower())):
            paragraph[-1] = end_with_full_stop(paragraph[-1])
            yield paragraph
            paragraph = []
