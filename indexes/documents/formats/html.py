"""Web pages (.html, .htm) as passages; scripts, styles and what stands around the text are left out."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks
from indexes.documents.document_reader import DocumentReader, read_as_text
from indexes.documents.formats.block_building import Outline, format_table
from indexes.documents.formats.page_furniture import Furniture, find_furniture
from indexes.text.control_characters import TolerantHtmlParser

SKIPPED_TAGS = {"script", "style", "template", "noscript", "nav", "svg", "math", "button", "select", "iframe", "object"}
LIST_TAGS = {"ul", "ol", "dl"}
INLINE_TAGS = {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins"}
INLINE_TAGS |= {"kbd", "label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u"}
INLINE_TAGS |= {"var", "wbr"}
NO_FURNITURE = Furniture()
_HEADING = re.compile(r"h[1-6]")


def chunk_html(text: str, _notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """The text of a page's `<title>`, or "", and its passages."""
    title, blocks = read_html_blocks(text, find_furniture(text))
    if not blocks:  # a page that is nothing else
        title, blocks = read_html_blocks(text)
    return title, chunk_blocks(blocks)


def read_html_blocks(text: str, furniture: Furniture = NO_FURNITURE) -> tuple[str, list[Block]]:
    """The text of a page's `<title>`, or "", and its blocks."""
    parser = _BlockParser(furniture)
    parser.feed(text)
    parser.close()
    return parser.title, parser.blocks


class _BlockParser(TolerantHtmlParser):
    """Collects blocks. Every tag that is not inline ends the paragraph before it."""

    def __init__(self, furniture: Furniture) -> None:
        super().__init__()
        self._furniture = furniture
        self.title, self.blocks = "", list[Block]()
        self._outline = Outline()
        self._parts: list[Line] = []  # of the open paragraph's lines
        self._items: list[Line] = []  # of the open list
        self._rows: list[list[Line]] = []  # of the open table
        self._tag = ""
        self._skipped_depth, self._list_depth, self._table_depth = 0, 0, 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._skipped_depth += tag in SKIPPED_TAGS
        if tag in INLINE_TAGS or self._skipped_depth:
            return
        self._finish_paragraph()
        if self._furniture.holds(self.getpos()):
            return
        self._list_depth += tag in LIST_TAGS
        self._table_depth += tag == "table"
        if tag == "tr" or (tag in ("td", "th") and not self._rows):
            self._rows.append([])
        self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in SKIPPED_TAGS:
            self._skipped_depth = max(0, self._skipped_depth - 1)
        elif tag not in INLINE_TAGS and not self._skipped_depth and not self._furniture.holds(self.getpos()):
            self._finish_paragraph()
            if tag in LIST_TAGS:
                self._leave_list()
            elif tag == "table":
                self._leave_table()
            self._tag = ""

    def handle_data(self, data: str) -> None:
        if not self._skipped_depth and not self._furniture.holds(self.getpos()):
            self._parts += [Line(number, text) for number, text in enumerate(data.split("\n"), start=self.getpos()[0])]

    def close(self) -> None:
        super().close()
        self._finish_paragraph()
        self._leave_table(all_levels=True)
        self._leave_list(all_levels=True)
        self.blocks += self._outline.finish()

    def _finish_paragraph(self) -> None:
        """Make a title, a heading, an item, a cell or a paragraph of the open lines, by the tag they are in."""
        parts, self._parts = self._parts, []
        joined = (Line(at, "".join(part.text for part in same)) for at, same in groupby(parts, attrgetter("number")))
        lines = [line for line in joined if line.text.strip()]
        if not lines:
            return
        whole = Line(lines[0].number, " ".join(" ".join(line.text for line in lines).split()))
        if self._tag == "title":
            self.title = self.title or whole.text
        elif _HEADING.fullmatch(self._tag):
            self._leave_list(all_levels=True)
            self.blocks += self._outline.add_heading(int(self._tag[1]), whole)
        elif self._table_depth and self._rows:
            self._rows[-1].append(whole)
        elif self._list_depth:
            self._items.append(whole)
        else:
            self.blocks += self._outline.build_block(lines)

    def _leave_list(self, *, all_levels: bool = False) -> None:
        self._list_depth = 0 if all_levels else max(0, self._list_depth - 1)
        if not self._list_depth:
            self.blocks += self._outline.build_list(self._items)
            self._items = []

    def _leave_table(self, *, all_levels: bool = False) -> None:
        self._table_depth = 0 if all_levels else max(0, self._table_depth - 1)
        if not self._table_depth:
            self._finish_table()

    def _finish_table(self) -> None:
        rows, self._rows = self._rows, []
        self.blocks += self._outline.build_block(format_table(rows), prose=False)


HTML = DocumentReader((".html", ".htm"), read_as_text(chunk_html))
