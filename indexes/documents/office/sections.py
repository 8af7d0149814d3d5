"""Passages of documents that have headings but no lines or pages to name: a place is the heading above."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from indexes.documents.chunking import Block, Chunk, chunk_blocks
from indexes.documents.passage_ids import escape_place

NOTES = "Notes"  # the heading of footnotes and endnotes, which come last, and of a speaker's notes


def name_paragraphs(numbers: str) -> str:
    """The place of a passage without a heading: `paragraph3`, `paragraphs3-7`."""
    return f"paragraph{'s' if '-' in numbers else ''}{numbers}"


def chunk_sections(blocks: Iterable[Block], name_unheaded: Callable[[str], str] = name_paragraphs) -> Iterator[Chunk]:
    """The passages. A place is the last heading above the passage's start; without one, `name_unheaded` makes it.

    It is given the numbers of the passage's paragraphs: "3", "3-7".
    """
    numbered = [_number_block(number, block) for number, block in enumerate(blocks, start=1)]
    for chunk in chunk_blocks(numbered):
        marks = tuple(replace(mark, place=_name_place(numbered, mark.place, name_unheaded)) for mark in chunk.marks)
        yield replace(chunk, place=_name_place(numbered, chunk.place, name_unheaded), marks=marks)


def _name_place(blocks: Sequence[Block], numbers: str, name_unheaded: Callable[[str], str]) -> str:
    headings = blocks[int(numbers.partition("-")[0]) - 1].headings
    return (escape_place(headings[-1]) if headings else "") or name_unheaded(numbers)


def _number_block(number: int, block: Block) -> Block:
    return replace(block, lines=tuple(replace(line, number=number) for line in block.lines), heading_line=0)
