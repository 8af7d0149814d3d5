"""Passages from documents in TREC's markup, whose paragraphs are numbered: the collection of RCD-2020.

    <doc>
    <docno>10046153</docno>
    <title>Rye bread</title>
    <p pno="0">Rye bread is made of rye flour.</p>
    <p pno="1">It keeps for a week.</p>
    </doc>

A passage is a paragraph; its id is `docno-pno`, as in the track's relevance labels (`10046153-34`).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from indexes.text.tolerant_html import TolerantHtmlParser
from schemas.errors import InvalidInputError
from schemas.records import Passage

NumberedItem = tuple[int, Passage | str]  # a line number with a passage, or with what is wrong there


def read_markup(lines: Iterable[bytes]) -> Iterator[NumberedItem]:
    """The passages of a file as a stream, with the lines in which they begin. Other tags go, their text stays."""
    reader = _MarkupReader()
    try:
        for line in lines:
            reader.feed(line.decode("utf-8", "replace"))
            yield from reader.take_items()
    except InvalidInputError as error:
        if error.where:  # of the file itself
            raise
        yield reader.getpos()[0], f"{error.what}: nothing can be read from here on"
        return
    reader.close()
    yield from reader.take_items()


class _MarkupReader(TolerantHtmlParser):
    """Collects passages. A tag that opens a field ends the one that is open; text outside of fields goes."""

    def __init__(self) -> None:
        super().__init__()
        self._found: list[NumberedItem] = []
        self._docno, self._title, self._pno = "", "", ""
        self._open, self._line = "", 0
        self._text: list[str] = []

    def take_items(self) -> list[NumberedItem]:
        """What was found since it was asked last."""
        found, self._found = self._found, []
        return found

    def set_cdata_mode(self, elem: str, **_: Any) -> None:
        """No tag here holds text alone, as a `title` of HTML does."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("doc", "docno", "title", "p"):
            return
        self._finish()
        if tag == "doc":
            self._docno = self._title = ""
        else:
            self._open, self._line = tag, self.getpos()[0]
            self._pno = (dict(attrs).get("pno") or "").strip()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("doc", self._open):
            self._finish()

    def handle_data(self, data: str) -> None:
        if self._open:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._finish()

    def _finish(self) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if self._open == "docno":
            self._docno, self._title = text, ""
        elif self._open == "title":
            self._title = text
        elif self._open == "p":
            self._found.append((self._line, self._passage(text)))
        self._open = ""

    def _passage(self, text: str) -> Passage | str:
        if not self._docno or not self._pno:
            return "bad passage: expected <docno> before it, and <p pno=...>"
        id = f"{self._docno}-{self._pno}"
        return Passage(id, text, self._title) if text else f"passage {id!r} has no text"
