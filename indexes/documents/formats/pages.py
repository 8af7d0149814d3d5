"""The text of a page, whose lines are as they were printed, as passages. A place is the number of a page: `p3`."""

import re
from collections.abc import Iterator, Sequence

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, end_with_full_stop
from indexes.text.segmentation import SentenceSplitter

MIN_FULL_LINE = 0.6  # share of a page's widest line; a shorter line ends a paragraph
_HYPHEN_AT_END = re.compile(r"(?<=[^\W\d_])[-\u00ad]$")


def chunk_page(number: int, text: str, split: SentenceSplitter) -> Iterator[Chunk]:
    """The passages of a page, all of one place."""
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
