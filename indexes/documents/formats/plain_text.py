"""Plain text (.txt) as passages: paragraphs between empty lines, whose lines are either wrapped prose or each its own.

A line goes on in the next one if that begins with a small letter. Before a capital it may go on where the next word
would not have fitted; that can be chance, so it counts only in a paragraph that looks like prose in all else.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from indexes.documents.chunking import Block, Chunk, Line, Outline, chunk_blocks, end_with_full_stop
from indexes.text.sentence_ends import CLOSING, STOPS

MIN_WRAPPED_CHARACTERS = 45  # a shorter line was meant to end where it does, unless it is of a narrow column
MIN_COLUMN_CHARACTERS = 25  # of the widest line of such a column
MAX_HEADING_CHARACTERS = 80  # of a first line that may be a heading
MIN_FULL = 0.9  # share of the widest line; who wraps by hand does not fill each line
MIN_WORDY = 0.6  # share of a line that are words and numbers as in prose; code and logs have fewer
MAX_WORD_CHARACTERS = 60  # that are looked at
_BULLET = re.compile(r"(?:[-*•–·]|\[[ xX]\])\s+")
_NUMBERED = re.compile(r"\(?(?:\d{1,2}|[a-z])[.)]\s+\S")  # "1. Warm up"
LABEL = re.compile(r"(?:[^\s:;,.!?]+ ){0,4}[^\s:;,.!?]+:(?:\s|$)")  # "Monthly price: 17.99 EUR"
_WORD = re.compile(r"[\"'„“‘«»(]*(?:[^\W\d_]+(?:['’./-][^\W\d_]+)*|\d+(?:[.,:-]\d+)*)[^\w\s(){}\[\]=<>]*\)?[,;:.!?]*")


@dataclass(frozen=True, slots=True)
class _TextLine:
    """A line of a paragraph, without white space around it."""

    number: int
    text: str
    indent: int

    @property
    def width(self) -> int:
        return self.indent + len(self.text)

    @property
    def ends_sentence(self) -> bool:
        return self.text.rstrip(CLOSING)[-1:] in STOPS

    @property
    def is_finished(self) -> bool:
        """Whether it ends as a sentence, a lead-in or an item does."""
        return self.ends_sentence or self.text[-1] in ":;"

    @property
    def is_item(self) -> bool:
        return bool(_BULLET.match(self.text))

    @property
    def has_label(self) -> bool:
        return bool(LABEL.match(self.text))

    @property
    def is_entry(self) -> bool:
        return self.is_item or self.has_label or bool(_NUMBERED.match(self.text))

    @property
    def is_prose(self) -> bool:
        """Whether most of it are words and numbers, as in no line of code."""
        words = self.text.split()
        return sum(bool(_WORD.fullmatch(word[:MAX_WORD_CHARACTERS])) for word in words) >= MIN_WORDY * len(words)

    def is_full(self, following: "_TextLine", width: float) -> bool:
        """Whether the next line's first word would not have fitted."""
        return self.width + 1 + len(following.text.split(maxsplit=1)[0]) > MIN_FULL * width

    def begins_entry(self, before: "_TextLine") -> bool:
        """Whether it is an item or has a label, or begins with digits or a bracket as the line before does."""
        if self.is_entry and (not self.has_label or not self.text[0].islower() or before.has_label):
            return True
        return bool(re.search(r"[\d\[]", shape := _find_shape(self))) and shape == _find_shape(before)


def _find_shape(line: _TextLine) -> str:
    return re.sub(r"\d", "0", line.text.split(maxsplit=1)[0])


def chunk_text(text: str, _notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """No title, and the passages, whose places are lines."""
    return "", chunk_blocks(read_text_blocks(text))


def read_text_blocks(text: str, *, headed: bool = True) -> Iterator[Block]:
    """The blocks of all paragraphs. If `headed`, a single first line without a full stop is the heading of all."""
    paragraphs = list(_split_paragraphs(text))
    width = max(map(_find_width, paragraphs), default=0)
    heading = paragraphs[0][0] if headed and paragraphs and _may_be_heading(paragraphs[0]) else None
    for number, block in enumerate(
        block for lines in paragraphs[1 if heading else 0 :] for block in _read_paragraph(lines, width)
    ):
        if heading:
            first = heading.number if number == 0 else block.heading_line
            block = replace(block, headings=(heading.text, *block.headings), heading_line=first)
        yield block
    if heading and len(paragraphs) == 1:
        yield Block((Line(heading.number, heading.text),))


def _split_paragraphs(text: str) -> Iterator[Sequence[_TextLine]]:
    lines = (
        _TextLine(number, line.strip(), len(line) - len(line.lstrip()))
        for number, line in enumerate(text.expandtabs().split("\n"), start=1)
    )
    return (tuple(group) for filled, group in groupby(lines, key=lambda line: bool(line.text)) if filled)


def _may_be_heading(group: Sequence[_TextLine]) -> bool:
    text = group[0].text
    return len(group) == 1 and len(text) <= MAX_HEADING_CHARACTERS and end_with_full_stop(text) != text


def _read_paragraph(lines: Sequence[_TextLine], width: int) -> Iterator[Block]:
    """A list, or below its heading prose, or lines of their own, or some of each."""
    groups = _join_wrapped_lines(lines, width)
    if any(line.is_item for line in lines):
        joined = ((group[0].number, " ".join(line.text for line in group)) for group in groups)
        items = [Line(number, _BULLET.sub("", text, count=1)) for number, text in joined]
        yield from Outline().build_list(items)
        return
    headings: tuple[str, ...] = ()
    heading_line = 0
    if _is_headed(groups):
        (heading,), *groups = groups
        headings, heading_line = (heading.text,), heading.number
    if (
        all(group[-1].ends_sentence for group in groups)
        and max(len(line.text) for line in lines) >= MIN_WRAPPED_CHARACTERS
    ):
        groups = [[line for group in groups for line in group]]
    for is_prose, run in groupby(groups, key=lambda group: len(group) > 1):
        for lines in run if is_prose else [[line for group in run for line in group]]:
            ended = [Line(line.number, end_with_full_stop(line.text)) for line in lines]
            others = [Line(line.number, line.text) for line in lines[:-1]]
            yield Block((*others, ended[-1]) if is_prose else tuple(ended), headings, heading_line, is_prose)
            heading_line = 0


def _is_headed(groups: Sequence[Sequence[_TextLine]]) -> bool:
    """Whether the first line stands above a sentence, or above labels while it has none."""
    if len(groups) < 2 or not _may_be_heading(groups[0]) or groups[0][0].has_label or groups[1][0].text[0].islower():
        return False
    below = groups[1]
    is_prose = below[-1].ends_sentence and (len(below) > 1 or len(below[0].text) >= MIN_WRAPPED_CHARACTERS)
    return (is_prose and len(groups[0][0].text) < MIN_WRAPPED_CHARACTERS) or all(
        group[0].has_label for group in groups[1:]
    )


def _join_wrapped_lines(lines: Sequence[_TextLine], width: int) -> list[list[_TextLine]]:
    """The lines of a paragraph in groups, each of lines that go on in one another.

    `width` is that of wrapped lines elsewhere in the text; 0 where there are none.
    """
    own = _find_width(lines)
    width = own or width or max(MIN_WRAPPED_CHARACTERS, *(line.width for line in lines))
    unsure = [(one, other) for one, other in pairwise(lines) if _may_go_on(one, other)]
    trusted = {other.number for one, other in unsure if one.is_full(other, width)}
    if not own and len(trusted) < len(unsure):  # some line was broken without need
        trusted = set()
    column = _find_column(lines)
    groups = _cut(lines, column, trusted)
    cut = [part for group in groups for part in ([group] if group[-1].ends_sentence else _cut(group, column))]
    return _join_values(cut)


def _join_values(groups: Sequence[list[_TextLine]]) -> list[list[_TextLine]]:
    """The groups, a label together with the one line below it where another label follows, or nothing."""
    joined: list[list[_TextLine]] = []
    for group, after in zip(groups, [*groups[1:], None], strict=True):
        is_value = len(group) == 1 and not group[0].is_entry and (after is None or after[0].has_label)
        is_label = bool(joined) and len(joined[-1]) == 1 and joined[-1][0].has_label
        if is_value and is_label and joined[-1][0].text.endswith(":"):
            joined[-1].append(group[0])
        else:
            joined.append(list(group))
    return joined


def _cut(lines: Sequence[_TextLine], column: float, trusted: Collection[int] = ()) -> list[list[_TextLine]]:
    """Lines in groups, cut where one does not go on in the next. Before those that are trusted they do."""
    groups = [[lines[0]]]
    for before, line in pairwise(lines):
        if line.number in trusted or _goes_on(before, line, column):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _find_width(lines: Sequence[_TextLine]) -> int:
    """The widest line that surely goes on in the next; 0 where none does."""
    column = _find_column(lines)
    return max((one.width for one, other in pairwise(lines) if _goes_on(one, other, column)), default=0)


def _find_column(lines: Sequence[_TextLine]) -> float:
    """The width of a column of prose, which ends a sentence; infinite for other lines, none of which fills it."""
    widest = max(line.width for line in lines)
    return widest if widest >= MIN_COLUMN_CHARACTERS and lines[-1].ends_sentence else math.inf


def _goes_on(line: _TextLine, following: _TextLine, column: float) -> bool:
    """Whether a line surely goes on in the next, which is indented below an item, or has a small letter."""
    if following.indent > line.indent and line.is_item:
        return not following.begins_entry(line)
    if not following.text[0].islower() or line.is_finished:
        return False
    is_broken = len(line.text) >= MIN_WRAPPED_CHARACTERS or line.is_full(following, column)
    return is_broken and line.is_prose and not following.begins_entry(line)


def _may_go_on(line: _TextLine, following: _TextLine) -> bool:
    """Whether a line may go on in the next, which does not begin with a small letter."""
    is_cut = line.is_finished or following.text[0].islower() or following.begins_entry(line)
    return not is_cut and line.is_prose and following.is_prose
