"""Plain text and Markdown as paragraphs with their lines and headings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from indexes.documents.chunking import Block, Line, end_with_full_stop

WRAPPED = 45  # characters: a line of plain text that is shorter, though another follows, was meant to end there
HEADING = 80  # characters of a first line that may be the heading of plain text
ITEM = 6  # words of a list's item up to which it is set off with a semicolon, not with a full stop
_BULLET = re.compile(r"^\s*(?:[-*•–·]|\[[ xX]\])\s+")
_FRONT = re.compile(r"---\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|$)", re.DOTALL)


def read_text_blocks(text: str) -> Iterator[Block]:
    """Paragraphs of plain text: what stands between empty lines. A first line that stands alone is the heading."""
    headings: tuple[str, ...] = ()
    begins = 0
    for number, lines in enumerate(_split_paragraphs(text)):
        if (
            number == 0
            and len(lines) == 1
            and len(lines[0].text) <= HEADING
            and end_with_full_stop(lines[0].text) != lines[0].text
        ):
            headings, begins = (lines[0].text,), lines[0].number
        else:
            yield replace(_to_block(lines), headings=headings, begins=begins)
            begins = 0
    if begins:
        yield Block((Line(begins, headings[0]),))


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
        return is_list_line([Line(line.number, _BULLET.sub("", line.text)) for line in lines])
    if all(len(line.text) < WRAPPED for line in lines[:-1]) and len(lines) > 1:
        return Block(tuple(Line(line.number, end_with_full_stop(line.text)) for line in lines), prose=False)
    return Block(tuple(lines))


def is_list_line(items: Sequence[Line], headings: tuple[str, ...] = (), begins: int = 0) -> Block:
    """A list whose items can be told apart when its lines are run together."""
    *others, last = items
    ended = [Line(item.number, _list_item(item.text)) for item in others]
    return Block((*ended, Line(last.number, end_with_full_stop(last.text))), headings, begins, prose=False)


def _list_item(text: str) -> str:
    short = len(text.split()) <= ITEM and end_with_full_stop(text) != text
    return f"{text};" if short else end_with_full_stop(text)


def format_row(names: Sequence[str], values: Sequence[str]) -> str:
    """A row of a table: `name: value; name: value.`, without what is empty. A column without a name is numbered."""
    named = [*names, *(f"column {number}" for number in range(len(names) + 1, len(values) + 1))]
    pairs = [(name.strip(), " ".join(value.split())) for name, value in zip(named, values, strict=False)]
    return end_with_full_stop("; ".join(f"{name}: {value}" if name else value for name, value in pairs if value))


class Outline:
    """The headings above the place that a reader has come to."""

    def __init__(self) -> None:
        self._levels: list[tuple[int, str]] = []
        self._line, self._alone = 0, False

    @property
    def above(self) -> tuple[str, ...]:
        return tuple(text for _, text in self._levels)

    def heading(self, level: int, line: Line) -> Iterator[Block]:
        """Go on below a heading. One before it that nothing stands below is a paragraph itself."""
        if self._alone and level <= self._levels[-1][0]:
            yield from self.end()
        self._levels = [*(held for held in self._levels if held[0] < level), (level, line.text)]
        self._line, self._alone = line.number, True

    def end(self) -> Iterator[Block]:
        """The last heading, if nothing stood below it."""
        if self._alone:
            yield Block((Line(self._line, end_with_full_stop(self._levels[-1][1])),), self.above[:-1])
        self._alone = False

    def begins(self) -> int:
        """The line of the heading right above what comes now, else 0."""
        line, self._line, self._alone = self._line, 0, False
        return line


def read_markdown_blocks(text: str) -> Iterator[Block]:
    """Paragraphs, lists, tables and code of Markdown (CommonMark with tables), front matter as a list of its lines."""
    from markdown_it import MarkdownIt

    front = _FRONT.match(text)
    if front:
        numbered = enumerate(front[1].split("\n"), start=2)
        lines = [Line(number, line) for number, line in numbered if line.strip() and not line.startswith("title:")]
        yield from [is_list_line(lines)] if lines else []
        text = "\n" * front[0].count("\n") + text[front.end() :]
    outline = Outline()
    tokens: Iterator[Any] = iter(MarkdownIt("commonmark").enable("table").parse(text))
    for token in tokens:
        if token.type == "heading_open":
            yield from outline.heading(int(token.tag[1]), _one_line(next(tokens)))
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            yield from _list_blocks(_tokens_until(tokens, token), outline)
        elif token.type == "table_open":
            yield from _table_blocks(_tokens_until(tokens, token), outline)
        elif token.type in ("fence", "code_block"):
            start = token.map[0] + (2 if token.type == "fence" else 1)
            yield from _code_blocks(token.content, start, outline)
        elif token.type == "html_block":
            yield from _html_inside(token.content, token.map[0], outline)
        elif token.type == "inline" and token.content.strip():
            yield Block(tuple(_inline_lines(token)), outline.above, outline.begins())
    yield from outline.end()


def find_title(text: str) -> str:
    """What the front matter of Markdown calls the document, or ""."""
    front = _FRONT.match(text)
    found = re.search(r"^title:[ \t]*(.+)$", front[1], re.MULTILINE) if front else None
    return found[1].strip().strip("\"'") if found else ""


def _tokens_until(tokens: Iterator[Any], opened: Any) -> list[Any]:
    """The tokens within the one that was opened."""
    inside: list[Any] = []
    for token in tokens:
        if token.level == opened.level and token.type == opened.type.replace("_open", "_close"):
            break
        inside.append(token)
    return inside


def _list_blocks(tokens: Iterable[Any], outline: Outline) -> Iterator[Block]:
    items = [_one_line(token) for token in tokens if token.type in ("inline", "fence", "code_block")]
    items = [Line(item.number, text) for item in items if (text := re.sub(r"^\[[ xX]\] ", "", item.text))]
    if items:
        yield is_list_line(items, outline.above, outline.begins())


def _table_blocks(tokens: Iterable[Any], outline: Outline) -> Iterator[Block]:
    rows: list[list[Line]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_one_line(token))
    names = [cell.text for cell in rows[0]] if rows else []
    lines = [Line(row[0].number, format_row(names, [cell.text for cell in row])) for row in rows[1:] if row]
    if lines:
        yield Block(tuple(lines), outline.above, outline.begins(), prose=False)


def _code_blocks(content: str, start: int, outline: Outline) -> Iterator[Block]:
    lines = [Line(number, line) for number, line in enumerate(content.split("\n"), start=start) if line.strip()]
    if lines:
        yield Block(tuple(lines), outline.above, outline.begins(), prose=False)


def _html_inside(content: str, before: int, outline: Outline) -> Iterator[Block]:
    from indexes.documents.html import read_html_blocks

    for block in read_html_blocks(content)[1]:
        lines = tuple(Line(line.number + before, line.text) for line in block.lines)
        yield Block(lines, (*outline.above, *block.headings), outline.begins(), block.prose)


def _one_line(token: Any) -> Line:
    """All that an inline token says, in one."""
    number = token.map[0] + 1
    if token.type != "inline":
        return Line(number, " ".join(token.content.split()))
    return Line(number, " ".join(line.text for line in _inline_lines(token)).strip())


def _inline_lines(token: Any) -> list[Line]:
    """The lines of an inline token without their signs: of a link its text, of an image its description."""
    lines = [""]
    for child in token.children:
        if child.type in ("softbreak", "hardbreak"):
            lines.append("")
        elif child.type in ("text", "code_inline", "image"):
            lines[-1] += child.content
    return [Line(number, line) for number, line in enumerate(lines, start=token.map[0] + 1)]
