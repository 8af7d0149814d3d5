"""Plain text (.txt) as passages: paragraphs between empty lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from indexes.documents.block_building import build_list_block
from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, end_with_full_stop
from indexes.documents.document_reader import DocumentReader, read_as_text
from indexes.text.segmentation import SentenceSplitter

MIN_WRAPPED_CHARACTERS = 45  # a shorter line, though another follows, was meant to end where it does
MAX_HEADING_CHARACTERS = 80  # of a first line that may be a heading
_BULLET = re.compile(r"^\s*(?:[-*•–·]|\[[ xX]\])\s+")


def chunk_plain_text(text: str, split: SentenceSplitter, _notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """No title, and the passages of plain text."""
    return "", chunk_blocks(read_text_blocks(text), split)


def read_text_blocks(text: str, *, headed: bool = True) -> Iterator[Block]:
    """The paragraphs. If `headed`, a first line without a full stop above an empty line is the heading of all."""
    headings: tuple[str, ...] = ()
    heading_line = 0
    for number, lines in enumerate(_split_paragraphs(text)):
        if headed and number == 0 and _is_heading(lines):
            headings, heading_line = (lines[0].text,), lines[0].number
        else:
            yield replace(_to_block(lines), headings=headings, heading_line=heading_line)
            heading_line = 0
    if heading_line:
        yield Block((Line(heading_line, headings[0]),))


def _is_heading(lines: Sequence[Line]) -> bool:
    text = lines[0].text
    return len(lines) == 1 and len(text) <= MAX_HEADING_CHARACTERS and end_with_full_stop(text) != text


def _split_paragraphs(text: str) -> Iterator[list[Line]]:
    paragraph: list[Line] = []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            paragraph.append(Line(number, line.strip()))
        elif paragraph:
            yield paragraph
            paragraph = []


def _to_block(lines: Sequence[Line]) -> Block:
    if any(_BULLET.match(line.text) for line in lines):
        return build_list_block([Line(line.number, _BULLET.sub("", line.text)) for line in lines])
    if all(len(line.text) < MIN_WRAPPED_CHARACTERS for line in lines[:-1]) and len(lines) > 1:
        return Block(tuple(Line(line.number, end_with_full_stop(line.text)) for line in lines), prose=False)
    return Block(tuple(lines))


READER = DocumentReader((".txt",), read_as_text(chunk_plain_text))
