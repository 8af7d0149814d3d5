"""Headings, lists and table rows as blocks, built alike from Markdown, HTML and plain text."""

from collections.abc import Iterator, Sequence

from indexes.documents.chunking import Block, Line, end_with_full_stop, shorten_label

MAX_SHORT_ITEM_WORDS = 6  # words of a list item that ends with a semicolon; a longer one ends with a full stop


def build_list_block(items: Sequence[Line], headings: tuple[str, ...] = (), heading_line: int = 0) -> Block:
    """A list with punctuation after each item, so that items stay apart when the lines are joined."""
    *others, last = items
    ended = [Line(item.number, _end_item(item.text)) for item in others]
    return Block((*ended, Line(last.number, end_with_full_stop(last.text))), headings, heading_line, prose=False)


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
        """A list below the headings; nothing where it has no items."""
        if items:
            yield build_list_block(items, self.headings, self.take_heading_line())

    def finish(self) -> Iterator[Block]:
        """The last heading as a paragraph, if nothing came below it."""
        if self._is_last_empty:
            yield Block((Line(self._line, end_with_full_stop(self._levels[-1][1])),), self.headings[:-1])
        self._is_last_empty = False

    def take_heading_line(self) -> int:
        """The line of the heading right above the next block, which is now no longer empty; 0 where there is none."""
        line, self._line, self._is_last_empty = self._line, 0, False
        return line
