"""Passages of documents that have headings but no lines or pages to name: a place is the heading above."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from indexes.documents.chunking import Block, Chunk, chunk_blocks
from indexes.documents.passage_ids import escape_place

NOTES = "Notes"  # the heading of footnotes and endnotes, which come last, and of a speaker's notes


def chunk_sections(blocks: Iterable[Block], unheaded: str = "") -> Iterator[Chunk]:
    """The passages. A place is the last heading above the passage's start, else `unheaded`, or `paragraphs3-7`."""
    numbered = [
        replace(block, lines=tuple(replace(line, number=number) for line in block.lines), heading_line=0)
        for number, block in enumerate(blocks, start=1)
    ]

    def name_place(numbers: str) -> str:
        headings = numbered[int(numbers.partition("-")[0]) - 1].headings
        paragraphs = f"paragraph{'s' if '-' in numbers else ''}{numbers}"
        return (escape_place(headings[-1]) if headings else "") or unheaded or paragraphs

    for chunk in chunk_blocks(numbered):
        marks = tuple(replace(mark, place=name_place(mark.place)) for mark in chunk.marks)
        yield replace(chunk, place=name_place(chunk.place), marks=marks)
