"""Passages from documents in TREC's markup, whose paragraphs are numbered: the collection of RCD-2020.

    <doc>
    <docno>10046153</docno>
    <title>Rye bread</title>
    <p pno="0">Rye bread is made of rye flour.</p>
    <p pno="1">It keeps for a week.</p>
    </doc>

A passage is a paragraph; its id is `docno-pno`, as in the track's relevance labels (`10046153-34`). The number may also
be an element, `<pno>1</pno>`, before the paragraph or in it, and have the document's in front: `10046153-1`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from indexes.text.tolerant_html import TolerantHtmlParser
from schemas.errors import InvalidInputError
from schemas.records import Passage

NumberedItem = tuple[int, Passage | str]  # a line number, and the passage or what is wrong there


def read_markup(lines: Iterable[bytes]) -> Iterator[NumberedItem]:
    """The passages of a file as a stream, with their first lines. Other tags are dropped, but not the text in them."""
    parser = _MarkupParser()
    try:
        for line in lines:
            parser.feed(line.decode("utf-8", "replace"))
            yield from parser.take_items()
    except InvalidInputError as error:
        if error.where:  # about the file, not its markup
            raise
        yield parser.getpos()[0], f"{error.what}: nothing can be read from here on"
        return
    parser.close()
    yield from parser.take_items()


class _MarkupParser(TolerantHtmlParser):
    """Collects passages. A tag that opens a field ends the field before it; text outside fields is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[NumberedItem] = []
        self._docno, self._title, self._pno = "", "", ""
        self._number: list[str] | None = None  # the text of a <pno> that is open
        self._next_pno = ""  # of a <pno> before its paragraph
        self._field, self._line = "", 0
        self._text: list[str] = []

    def take_items(self) -> list[NumberedItem]:
        """The items found since the last call."""
        items, self._items = self._items, []
        return items

    def set_cdata_mode(self, elem: str, **_: Any) -> None:
        """Do nothing: here no tag holds only text, as the `title` of HTML does."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._finish_number()
        if tag == "pno":
            self._number = []
        if tag not in ("doc", "docno", "title", "p"):
            return
        self._finish_field()
        if tag == "doc":
            self._docno = self._title = self._next_pno = ""
        else:
            self._field, self._line = tag, self.getpos()[0]
        if tag == "p":
            self._pno, self._next_pno = (dict(attrs).get("pno") or self._next_pno).strip(), ""

    def handle_endtag(self, tag: str) -> None:
        self._finish_number()
        if tag in ("doc", self._field):
            self._finish_field()

    def handle_data(self, data: str) -> None:
        if self._number is not None:
            self._number.append(data)
        elif self._field:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._finish_field()

    def _finish_number(self) -> None:
        """A number inside a paragraph is that paragraph's, unless it has one; any other is the next one's."""
        if self._number is None:
            return
        pno, self._number = "".join(self._number).strip(), None
        if self._field == "p":
            self._pno = self._pno or pno
        else:
            self._next_pno = pno

    def _finish_field(self) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if self._field == "docno":
            self._docno, self._title = text, ""
        elif self._field == "title":
            self._title = text
        elif self._field == "p":
            self._items.append((self._line, self._to_passage(text)))
        self._field = ""

    def _to_passage(self, text: str) -> Passage | str:
        docno = self._docno or self._pno.rpartition("-")[0]
        if not docno or not self._pno:
            return "bad passage: expected <docno> before it, and <p pno=...> or <pno>"
        id = self._pno if self._pno.startswith(f"{docno}-") else f"{docno}-{self._pno}"
        return Passage(id, text, self._title) if text else f"passage {id!r} has no text"
