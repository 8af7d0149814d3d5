"""Markdown (.md, .markdown) as passages: CommonMark with tables, and front matter."""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from indexes.documents.chunking import Block, Chunk, Line, Outline, chunk_blocks, format_rows
from indexes.documents.formats.html import read_html_blocks

_FRONT_MATTER = re.compile(r"---\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|$)", re.DOTALL)


def chunk_markdown(text: str, _notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    front = _FRONT_MATTER.match(text)
    title = re.search(r"^title:[ \t]*(.+)$", front[1], re.MULTILINE) if front else None
    return title[1].strip().strip("\"'") if title else "", chunk_blocks(_read_blocks(text))


def _read_blocks(text: str) -> Iterator[Block]:
    """Front matter as a list of its lines, then paragraphs, lists, tables and code."""
    from markdown_it import MarkdownIt

    if front := _FRONT_MATTER.match(text):
        numbered = enumerate(front[1].split("\n"), start=2)
        lines = [Line(number, line) for number, line in numbered if line.strip() and not line.startswith("title:")]
        yield from Outline().build_list(lines)
        text = "\n" * front[0].count("\n") + text[front.end() :]
    outline = Outline()
    tokens: Iterator[Any] = iter(MarkdownIt("commonmark").enable("table").parse(text))
    for token in tokens:
        yield from _read_token(token, tokens, outline)
    yield from outline.finish()


def _read_token(token: Any, following: Iterator[Any], outline: Outline) -> Iterator[Block]:
    """The blocks of a token and of those that belong to it, which are taken from the tokens that follow."""
    if token.type == "heading_open":
        yield from outline.add_heading(int(token.tag[1]), _join_lines(next(following)))
    elif token.type in ("bullet_list_open", "ordered_list_open"):
        yield from _read_list(_take_tokens_within(following, token), outline)
    elif token.type == "table_open":
        yield from _read_table(_take_tokens_within(following, token), outline)
    elif token.type in ("fence", "code_block"):
        numbered = enumerate(token.content.split("\n"), start=token.map[0] + (2 if token.type == "fence" else 1))
        yield from outline.build_block([Line(number, line) for number, line in numbered if line.strip()], prose=False)
    elif token.type == "html_block":
        for block in read_html_blocks(token.content)[1]:
            lines = tuple(Line(line.number + token.map[0], line.text) for line in block.lines)
            yield Block(lines, (*outline.headings, *block.headings), outline.take_heading_line(), block.prose)
    elif token.type == "inline" and token.content.strip():
        yield from outline.build_block(_read_lines(token))


def _take_tokens_within(tokens: Iterator[Any], opening: Any) -> list[Any]:
    """The tokens up to the one that closes `opening`."""
    closing = opening.level, opening.type.replace("_open", "_close")
    return list(takewhile(lambda token: (token.level, token.type) != closing, tokens))


def _read_list(tokens: Iterable[Any], outline: Outline) -> Iterator[Block]:
    items = [_join_lines(token) for token in tokens if token.type in ("inline", "fence", "code_block")]
    items = [Line(item.number, text) for item in items if (text := re.sub(r"^\[[ xX]\] ", "", item.text))]
    yield from outline.build_list(items)


def _read_table(tokens: Iterable[Any], outline: Outline) -> Iterator[Block]:
    rows: list[list[Line]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_join_lines(token))
    yield from outline.build_block(format_rows(rows), prose=False)


def _join_lines(token: Any) -> Line:
    number = token.map[0] + 1
    if token.type != "inline":
        return Line(number, " ".join(token.content.split()))
    return Line(number, " ".join(line.text for line in _read_lines(token)).strip())


def _read_lines(token: Any) -> list[Line]:
    """The lines of an inline token without markup: of a link its text, of an image its description."""
    lines = [""]
    for child in token.children:
        if child.type in ("softbreak", "hardbreak"):
            lines.append("")
        elif child.type in ("text", "code_inline", "image"):
            lines[-1] += child.content
    return [Line(number, line) for number, line in enumerate(lines, start=token.map[0] + 1)]
