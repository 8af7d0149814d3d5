"""Paragraphs into passages of about 80 to 150 words, cut between paragraphs or, where one is longer, sentences.

A short section is joined to the one after it; its heading then stands in the text. Otherwise headings are the title.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile

from indexes.text.segmentation import SentenceSplitter

MIN_WORDS, MAX_WORDS = 80, 150  # words: a passage with so many ends with its paragraph; none has more
SHORT_WORDS = 40  # words that do not stand alone: they join the paragraph before them, and the next section joins them
CHARACTERS_PER_WORD = 10  # characters that count as a word, where words are longer or have no spaces between them
MAX_SENTENCE_CHARACTERS = 600  # characters of a sentence; a longer one is cut between words, or within one
SPLITTABLE = 100_000  # characters of a paragraph that is still looked through for sentences


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, or a part of it."""

    number: int  # in the file, from 1
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list, a table. `headings` are those above it, the outermost first."""

    lines: tuple[Line, ...]
    headings: tuple[str, ...] = ()
    begins: int = 0  # line of the heading right above it; 0 where there is none
    prose: bool = True  # sentences may run over its lines; otherwise a line stands by itself


@dataclass(frozen=True, slots=True)
class Chunk:
    """What becomes a passage: where it is in its file, what is above it, and its text."""

    place: str  # "12-18": the first and the last line; "p3": a page; "items[3]": a path in JSON
    text: str
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A paragraph, or a sentence or line of a long one."""

    text: str
    first: int
    last: int
    headings: tuple[str, ...]
    glue: str  # what is between it and the piece before

    @property
    def words(self) -> int:
        return _count_words(self.text)


def chunk_blocks(blocks: Iterable[Block], split: SentenceSplitter) -> Iterator[Chunk]:
    """The passages of a document in order. Their places are lines."""
    open_: list[_Piece] = []
    words = 0
    for piece in (piece for block in blocks for piece in _split_block(block, split)):
        ends = piece.glue == "\n" and words >= MIN_WORDS and piece.words >= SHORT_WORDS
        ends = ends or (bool(open_) and piece.headings != open_[-1].headings and words >= SHORT_WORDS)
        if open_ and (ends or words + piece.words > MAX_WORDS):
            yield _join_pieces(open_)
            open_, words = [], 0
        open_.append(piece)
        words += piece.words
    if open_:
        yield _join_pieces(open_)


def end_with_full_stop(text: str) -> str:
    """A line that stands by itself, with a full stop where it has no sign at its end."""
    return text if not text or text[-1] in ".!?:;,…。！？" or text[-2:] in ('."', ".)", "!)", "?)") else f"{text}."


def _count_words(text: str) -> int:
    return max(len(text.split()), len(text) // CHARACTERS_PER_WORD)


def _split_block(block: Block, split: SentenceSplitter) -> Iterator[_Piece]:
    """The whole block where it fits a passage, else its sentences, or its lines."""
    glue = " " if block.prose else "\n"
    whole = glue.join(text for line in block.lines if (text := " ".join(line.text.split())))
    if not whole:
        return
    first, last = block.begins or block.lines[0].number, block.lines[-1].number
    if _count_words(whole) <= MAX_WORDS:
        yield _Piece(whole, first, last, block.headings, "\n")
        return
    numbered = list(_locate_sentences(block, whole, split))
    for at, (text, begins, ends) in enumerate(numbered):
        start = (block.begins or begins) if at == 0 else begins
        yield _Piece(text, start, ends, block.headings, glue if at else "\n")


def _locate_sentences(block: Block, whole: str, split: SentenceSplitter) -> Iterator[tuple[str, int, int]]:
    """What a long block is cut into, with its first and last line: found again by counting what is no white space."""
    found = whole.split("\n") if not block.prose else split(whole) if len(whole) <= SPLITTABLE else [whole]
    short = [
        part
        for text in found
        for part in (textwrap.wrap(text, MAX_SENTENCE_CHARACTERS) if len(text) > MAX_SENTENCE_CHARACTERS else [text])
    ]
    numbers = [(line.number, len("".join(line.text.split()))) for line in block.lines]
    at, left = 0, numbers[0][1]
    for text in short:
        while not left and at + 1 < len(numbers):
            at, left = at + 1, numbers[at + 1][1]
        begins, size = numbers[at][0], len("".join(text.split()))
        while size > left and at + 1 < len(numbers):
            size -= left
            at, left = at + 1, numbers[at + 1][1]
        left -= min(size, left)
        yield text, begins, numbers[at][0]


def _join_pieces(pieces: Sequence[_Piece]) -> Chunk:
    """One passage: the headings that all pieces share are its headings, the others stand before what they head."""
    above = shared = reduce(_common_prefix, (piece.headings for piece in pieces))
    text = ""
    for piece in pieces:
        new = piece.headings[len(_common_prefix(above, piece.headings)) :]
        above = piece.headings
        before = end_with_full_stop(text) + piece.glue if piece.glue == "\n" else text + piece.glue
        text = (before if text else "") + " ".join(
            [*(re.sub(r"(?<=\w)$", ":", heading) for heading in new), piece.text]
        )
    first, last = pieces[0].first, pieces[-1].last
    return Chunk(f"{first}-{last}" if last > first else f"{first}", text, shared)


def _common_prefix(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """What both begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(heading for heading, _ in same)
