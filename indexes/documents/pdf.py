"""PDFs, page by page; pages that are pictures have no text."""

import io
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

from indexes.documents.cutting import Block, Line, Part, parts, sentence
from indexes.segments import Split
from schemas.errors import InvalidInputError

FULL = 0.6  # share of a page's widest line from which a line is full: a shorter one ends a paragraph
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-\u00ad]$")


def pdf_parts(data: bytes, split: Split) -> tuple[str, list[Part]]:
    """The title that a PDF gives itself, or "", and its passages, their places pages: `p3`.

    Raises `InvalidInputError` for a PDF that is encrypted or broken, or has no text.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells every fault that it gets over
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _opened(reader):
            raise InvalidInputError("is an encrypted PDF; save a copy without its password to have it read")
        pages = [page.extract_text() for page in reader.pages]
        title = str((reader.metadata and reader.metadata.title) or "")
    except InvalidInputError:
        raise
    except Exception as error:  # what pypdf raises for broken files has no common base
        raise InvalidInputError(f"is a broken PDF ({error})") from error
    found = [part for number, text in enumerate(pages, start=1) for part in _page_parts(number, text, split)]
    if not found:
        raise InvalidInputError("is a PDF without text (pages that are pictures have to go through OCR first)")
    return " ".join(title.split()), found


def _opened(reader: Any) -> bool:
    """Whether the empty password opens it, as it does where printing or changing alone is forbidden."""
    from pypdf.errors import DependencyError

    try:
        return bool(reader.decrypt(""))
    except DependencyError:
        return False


def _page_parts(number: int, text: str, split: Split) -> Iterator[Part]:
    blocks = [Block(tuple(Line(number, line) for line in paragraph)) for paragraph in _paragraphs(text.split("\n"))]
    return (Part(f"p{number}", part.text) for part in parts(blocks, split))


def _paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
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
            paragraph[-1] = sentence(paragraph[-1])
            yield paragraph
            paragraph = []
