"""Slides as passages. A place is the number of a slide: `slide4`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from indexes.documents.block_building import build_list_block
from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, end_with_full_stop
from indexes.documents.office.sections import NOTES
from indexes.text.segmentation import SentenceSplitter


@dataclass(frozen=True, slots=True)
class Slide:
    """What a slide says."""

    title: str
    texts: Sequence[Sequence[Line]]  # its boxes with their paragraphs, and its tables with their rows
    notes: Sequence[str] = ()  # the paragraphs of the speaker's notes


def chunk_slides(slides: Iterable[Slide], split: SentenceSplitter) -> Iterator[Chunk]:
    """The passages of the slides, each below its title."""
    for number, slide in enumerate(slides, start=1):
        for chunk in chunk_blocks(_build_blocks(slide), split):
            yield replace(chunk, place=f"slide{number}", marks=())


def number_lines(texts: Iterable[str]) -> list[Line]:
    """Paragraphs as lines, without the empty ones."""
    return [Line(1, text) for text in (" ".join(text.split()) for text in texts) if text]


def _build_blocks(slide: Slide) -> Iterator[Block]:
    headings = (slide.title,) if slide.title else ()
    boxes = [text for text in slide.texts if text]
    if slide.title and not boxes and not slide.notes:
        yield Block((Line(1, end_with_full_stop(slide.title)),))
    for box in boxes:
        yield build_list_block(box, headings) if len(box) > 1 else Block(tuple(box), headings)
    if slide.notes:
        yield Block(tuple(number_lines(slide.notes)), (*headings, NOTES))
