"""Web pages as paragraphs with their lines and headings; scripts, styles and navigation are left out."""

import re
from collections.abc import Sequence

from indexes.documents.chunking import Block, Line, end_with_full_stop
from indexes.documents.text_and_markdown import Outline, format_row, is_list_line
from indexes.text.tolerant_html import TolerantHtmlParser

LEFT_OUT = {"script", "style", "template", "noscript", "nav", "svg", "math", "button", "select", "iframe", "object"}
LISTS = {"ul", "ol", "dl"}
WITHIN = {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins", "kbd"}
WITHIN |= {"label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"}
_HEADING = re.compile(r"h[1-6]")


def read_html_blocks(text: str) -> tuple[str, list[Block]]:
    """The title of a page (what its `<title>` says, or ""), and its blocks."""
    reader = _HtmlReader()
    reader.feed(text)
    reader.close()
    return reader.title, reader.blocks


class _HtmlReader(TolerantHtmlParser):
    """Collects blocks. Every tag that does not stand within a line ends the paragraph before it."""

    def __init__(self) -> None:
        super().__init__()
        self.title, self.blocks = "", list[Block]()
        self._outline = Outline()
        self._lines: list[Line] = []  # of the paragraph that is open
        self._items: list[Line] = []  # of the list that is open
        self._rows: list[list[Line]] = []  # of the table that is open
        self._tag, self._left_out, self._lists, self._tables = "", 0, 0, 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._left_out += tag in LEFT_OUT
        if tag in WITHIN or self._left_out:
            return
        self._finish()
        self._lists += tag in LISTS
        self._tables += tag == "table"
        if tag == "tr" or (tag in ("td", "th") and not self._rows):
            self._rows.append([])
        self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in LEFT_OUT:
            self._left_out = max(0, self._left_out - 1)
        elif tag not in WITHIN and not self._left_out:
            self._finish()
            self._end_of(tag)
            self._tag = ""

    def handle_data(self, data: str) -> None:
        if not self._left_out:
            for number, text in enumerate(data.split("\n"), start=self.getpos()[0]):
                before = self._lines.pop().text if self._lines and self._lines[-1].number == number else ""
                self._lines.append(Line(number, before + text))

    def close(self) -> None:
        super().close()
        self._finish()
        self._end_of("table", all_of_them=True)
        self._end_of("ul", all_of_them=True)
        self.blocks += self._outline.end()

    def _finish(self) -> None:
        """What was collected becomes a title, a heading, an item, a cell or a paragraph, by where it stands."""
        held = [line for line in self._lines if line.text.strip()]
        self._lines = []
        if held:
            whole = Line(held[0].number, " ".join(" ".join(line.text for line in held).split()))
            if self._tag == "title":
                self.title = self.title or whole.text
            elif _HEADING.fullmatch(self._tag):
                self._end_of("ul", all_of_them=True)
                self.blocks += self._outline.heading(int(self._tag[1]), whole)
            elif self._tables and self._rows:
                self._rows[-1].append(whole)
            elif self._lists:
                self._items.append(whole)
            else:
                self.blocks.append(Block(tuple(held), self._outline.above, self._outline.begins()))

    def _end_of(self, tag: str, *, all_of_them: bool = False) -> None:
        if tag in LISTS:
            self._lists = 0 if all_of_them else max(0, self._lists - 1)
            if not self._lists and self._items:
                self.blocks.append(is_list_line(self._items, self._outline.above, self._outline.begins()))
                self._items = []
        elif tag == "table":
            self._tables = 0 if all_of_them else max(0, self._tables - 1)
            if not self._tables:
                self._take_table()

    def _take_table(self) -> None:
        """The first row names the columns, where there are several; a table of one column or row is a list of cells."""
        rows, self._rows = [row for row in self._rows if row], []
        if len(rows) > 1 and len(rows[0]) > 1:
            names = [cell.text for cell in rows[0]]
            lines = [Line(row[0].number, format_row(names, [cell.text for cell in row])) for row in rows[1:]]
        else:
            lines = [Line(cell.number, end_with_full_stop(cell.text)) for row in rows for cell in row]
        if lines:
            self.blocks.append(Block(tuple(lines), self._outline.above, self._outline.begins(), prose=False))
