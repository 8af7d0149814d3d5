"""Headings, paragraphs, lists and tables as blocks, and blocks as passages of about 80 to 150 words.

Passages end between paragraphs or, in long ones, between sentences.

A short section is joined to the one after it, and its heading goes into the text. Otherwise headings go into the title.

The id of a passage is the file's path below its folder, and the place in it: `recipes/bread.md:12-18` (lines),
`manual.pdf:p3` (a page; `p3.2` is its second passage), `people.csv:5`, `data.json:items[3]`, `lease.docx:Deposit` (a
heading), `talk.pptx:slide4`, `costs.xlsx:Food!12` (a row of a sheet), `letters.mbox:message3`. Characters that would
break or disguise a line of text are escaped as in a URI: %0A. The last colon of an id ends the path: there is none in a
place.
"""

import hashlib
import os
import re
import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, takewhile

from indexes.text.sentences import split_sentences
from schemas.records import Mark

MIN_WORDS, MAX_WORDS = 80, 150  # a passage with the minimum ends where its paragraph ends; none has more than the most
SHORT_WORDS = 40  # a shorter paragraph joins the one before it, and a shorter section the next one
CHARACTERS_PER_WORD = 10  # that count as a word where words are longer or have no spaces between them
MAX_SENTENCE_CHARACTERS = 600  # a longer sentence is cut between words, or within one
MAX_SHORT_ITEM_WORDS = 6  # words of a list item that ends with a semicolon; a longer one ends with a full stop
MAX_LABEL_CHARACTERS = 200  # of a title, a heading or a column's name, each of which stands with many passages
MAX_SPLITTABLE_CHARACTERS = 100_000  # a longer paragraph is not split into sentences
MAX_PLACE_CHARACTERS = 60  # of a heading
# Controls, line separators, marks of text direction, bytes that are no UTF-8; and what looks like an escape.
_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})")

NOTES = "Notes"  # the heading of footnotes and endnotes, which come last, and of a speaker's notes


@dataclass(frozen=True, slots=True)
class Line:
    number: int  # in the file, from 1
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list or a table."""

    lines: tuple[Line, ...]
    headings: tuple[str, ...] = ()  # above it, the outermost first
    heading_line: int = 0  # of the heading right above it; 0 where there is none
    prose: bool = True  # whether sentences may run over its lines; otherwise each line is separate


def end_with_full_stop(text: str) -> str:
    """A separate line with a full stop, unless it ends with punctuation."""
    return text if not text or text[-1] in ".!?:;,…。！？" or text[-2:] in ('."', ".)", "!)", "?)") else f"{text}."


def shorten_label(text: str) -> str:
    """A title, a heading or the name of a value as passages have it: a long one ends in an ellipsis."""
    return text if len(text) <= MAX_LABEL_CHARACTERS else f"{text[: MAX_LABEL_CHARACTERS - 1].rstrip()}…"


def _end_item(text: str) -> str:
    is_short = len(text.split()) <= MAX_SHORT_ITEM_WORDS and end_with_full_stop(text) != text
    return f"{text};" if is_short else end_with_full_stop(text)


def format_row(names: Sequence[str], values: Sequence[str]) -> str:
    """A row of a table as `name: value; name: value.`, without empty values. Columns without a name are numbered."""
    all_names = [*names, *(f"column {number}" for number in range(len(names) + 1, len(values) + 1))]
    pairs = [
        (shorten_label(name.strip()), " ".join(value.split())) for name, value in zip(all_names, values, strict=False)
    ]
    return end_with_full_stop("; ".join(f"{name}: {value}" if name else value for name, value in pairs if value))


def format_rows(rows: Sequence[Sequence[Line]]) -> list[Line]:
    """The rows of a table below the first, which names the columns. Rows without cells are left out."""
    names = [cell.text for cell in rows[0]] if rows else []
    filled = (row for row in rows[1:] if any(cell.text for cell in row))
    return [Line(row[0].number, format_row(names, [cell.text for cell in row])) for row in filled]


def format_table(rows: Sequence[Sequence[Line]]) -> list[Line]:
    """The lines of a table whose first row names the columns; one of a single column or row is a list of its cells."""
    filled = [row for row in rows if any(cell.text for cell in row)]
    if len(filled) > 1 and len(filled[0]) > 1:
        return format_rows(filled)
    return [Line(cell.number, end_with_full_stop(cell.text)) for row in filled for cell in row if cell.text]


class Outline:
    """The headings above the current place in a document."""

    def __init__(self) -> None:
        self._levels: list[tuple[int, str]] = []
        self._line, self._is_last_empty = 0, False  # of the last heading; whether nothing came below it yet

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self._levels)

    def add_heading(self, level: int, line: Line) -> Iterator[Block]:
        """Continue below a new heading. If the one before it has nothing below it, it is a paragraph of its own."""
        if self._is_last_empty and level <= self._levels[-1][0]:
            yield from self.finish()
        self._levels = [*(held for held in self._levels if held[0] < level), (level, line.text)]
        self._line, self._is_last_empty = line.number, True

    def build_block(self, lines: Sequence[Line], *, prose: bool = True) -> Iterator[Block]:
        """A paragraph below the headings, or lines that are separate; nothing where there are none."""
        if lines:
            yield Block(tuple(lines), self.headings, self.take_heading_line(), prose)

    def build_list(self, items: Sequence[Line]) -> Iterator[Block]:
        """A list with punctuation after each item, so that items stay apart when the lines are joined."""
        ended = [Line(item.number, _end_item(item.text)) for item in items[:-1]]
        ended += [Line(item.number, end_with_full_stop(item.text)) for item in items[-1:]]
        yield from self.build_block(ended, prose=False)

    def finish(self) -> Iterator[Block]:
        """The last heading as a paragraph, if nothing came below it."""
        if self._is_last_empty:
            yield Block((Line(self._line, end_with_full_stop(self._levels[-1][1])),), self.headings[:-1])
        self._is_last_empty = False

    def take_heading_line(self) -> int:
        """The line of the heading right above the next block, which is now no longer empty; 0 where there is none."""
        line, self._line, self._is_last_empty = self._line, 0, False
        return line


@dataclass(frozen=True, slots=True)
class Chunk:
    place: str  # "12-18": the first and the last line; "p3": a page; "items[3]": a path in JSON
    text: str
    headings: tuple[str, ...] = ()  # above it, the outermost first
    date: str = ""  # that it says of itself, as a message does: ISO 8601, UTC
    marks: tuple[Mark, ...] = ()  # its lines


@dataclass(frozen=True, slots=True)
class _Piece:
    """A paragraph, or a sentence or line of a long one."""

    text: str
    first: int
    last: int
    headings: tuple[str, ...]
    glue: str  # white space between it and the piece before
    lines: tuple[Line, ...]  # with its text, all but for punctuation

    @property
    def words(self) -> int:
        return _count_words(self.text)


def chunk_blocks(blocks: Iterable[Block], place: str = "") -> Iterator[Chunk]:
    """The chunks of a document, or of a part of it that is one place, in order. Else their places are lines."""
    pending: list[_Piece] = []
    words = 0
    for piece in (piece for block in blocks for piece in _split_block(block)):
        ends = piece.glue == "\n" and words >= MIN_WORDS and piece.words >= SHORT_WORDS
        ends = ends or (bool(pending) and piece.headings != pending[-1].headings and words >= SHORT_WORDS)
        if pending and (ends or words + piece.words > MAX_WORDS):
            yield _join_pieces(pending, place)
            pending, words = [], 0
        pending.append(piece)
        words += piece.words
    if pending:
        yield _join_pieces(pending, place)


def _count_words(text: str) -> int:
    return max(len(text.split()), len(text) // CHARACTERS_PER_WORD)


def _split_block(block: Block) -> Iterator[_Piece]:
    """The whole block if it fits a passage, else its sentences or lines."""
    glue = " " if block.prose else "\n"
    whole = glue.join(text for line in block.lines if (text := " ".join(line.text.split())))
    if not whole:
        return
    headings = tuple(map(shorten_label, block.headings))
    first, last = block.heading_line or block.lines[0].number, block.lines[-1].number
    if _count_words(whole) <= MAX_WORDS:
        yield _Piece(whole, first, last, headings, "\n", block.lines)
        return
    parts = _cut_block(block, whole)
    for number, (text, first, last) in enumerate(_locate_parts(parts, block.lines)):
        start, before = (first, glue) if number else (block.heading_line or first, "\n")
        yield _Piece(text, start, last, headings, before, (Line(first, text),))


def _cut_block(block: Block, whole: str) -> list[str]:
    """The sentences or lines of a long block, each at most `MAX_SENTENCE_CHARACTERS` long."""
    if not block.prose:
        found: Sequence[str] = whole.split("\n")
    else:
        found = split_sentences(whole) if len(whole) <= MAX_SPLITTABLE_CHARACTERS else [whole]
    most = MAX_SENTENCE_CHARACTERS
    return [part for text in found for part in (textwrap.wrap(text, most) if len(text) > most else [text])]


def _locate_parts(parts: Iterable[str], lines: Sequence[Line]) -> Iterator[tuple[str, int, int]]:
    """The parts of some lines with their first and last line, found by counting the characters except white space."""
    ends = list(accumulate(_count_visible(line.text) for line in lines))
    at = 0
    for text in parts:
        first = bisect_right(ends, at)
        at += _count_visible(text)
        yield text, lines[first].number, lines[bisect_left(ends, at)].number


def _count_visible(text: str) -> int:
    return len("".join(text.split()))


def _join_pieces(pieces: Sequence[_Piece], place: str) -> Chunk:
    """One chunk: headings that all pieces share become its own, the others go before the text below them."""
    current = shared = reduce(_find_common_prefix, (piece.headings for piece in pieces))
    text = ""
    marks: list[Mark] = []
    for piece in pieces:
        new = piece.headings[len(_find_common_prefix(current, piece.headings)) :]
        current = piece.headings
        if text:
            text = (end_with_full_stop(text) if piece.glue == "\n" else text) + piece.glue
        before, text = text, text + "".join(re.sub(r"(?<=\w)$", ":", heading) + " " for heading in new)
        marks += _mark_lines(piece, _count_visible(before), _count_visible(text), len(shared))
        text += piece.text
    if place:
        return Chunk(place, text, shared)
    first, last = pieces[0].first, pieces[-1].last
    return Chunk(f"{first}-{last}" if last > first else f"{first}", text, shared, marks=tuple(marks))


def _mark_lines(piece: _Piece, first: int, start: int, shared: int) -> Iterator[Mark]:
    """Where each line of a piece begins in the text; the first one with the new headings before it."""
    for line in piece.lines:
        if line.text.strip():
            yield Mark(first, str(line.number), piece.headings[shared:])
            first = start = start + _count_visible(line.text)


def _find_common_prefix(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(heading for heading, _ in same)


def chunk_sections(blocks: Iterable[Block], unheaded: str = "") -> Iterator[Chunk]:
    """The passages of a document that has no lines or pages to name.

    A place is the last heading above the passage's start, else `unheaded`, or `paragraphs3-7`.
    """
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


def escape_name(name: str) -> str:
    """A file's name or path as ids have it: printable, and in one line."""
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in os.fsencode(found[0])), name)


def escape_place(text: str) -> str:
    """A heading or the name of a sheet as the place in an id: without colons, and not too long."""
    short = " ".join(text.split())[:MAX_PLACE_CHARACTERS].strip(" :")
    return escape_name(short).replace(":", "%3A")


def shorten_place(place: str, most: int) -> str:
    """A place that can be written down, and of at most so many characters; a longer one ends in a digest of it."""
    written = place.encode("utf-8", "replace").decode("utf-8")
    if len(written) <= most:
        return written
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return f"{written[: most - len(digest) - 1]}~{digest}"
