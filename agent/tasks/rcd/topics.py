"""Topics of RCD-2020 (FIRE 2020, Retrieval from Conversational Dialogues): an excerpt of a film's dialogue each.

    <topics>
    <top>
    <num> 7 </num>
    <title> rye bread</title>
    <movie>The Baker</movie>
    <desc>
    <p>What would you like?</p>
    <p>A loaf of rye bread, please. </p>
    </desc>
    </top>
    </topics>

`title` is the span that a person marked, a label; test topics have none. The files are markup in the manner of TREC,
written by hand, and need not be well-formed XML: what can be read is read, and whatever was odd is reported.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.tracks.oddities import locate_errors
from indexes.storage.files import read_utf8
from indexes.text.control_characters import TolerantHtmlParser
from schemas.errors import InvalidInputError
from schemas.records import Problem

FIELDS = ("num", "title", "movie", "desc", "p")
FRAME = ("topics", "top")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What a run may see of a topic. In an utterance every run of white space is one space; there are no empty ones."""

    id: str  # the topic's number
    movie: str
    utterances: tuple[str, ...]

    @property
    def text(self) -> str:
        """The utterances, a line each."""
        return "\n".join(self.utterances)


Group = tuple[Dialogue, ...]  # topics that share one dialogue, in the order of the file


@dataclass(frozen=True, slots=True)
class RcdTopics:
    """A topics file: what a run sees apart from what it must not see (`references`, by topic number)."""

    dialogues: tuple[Dialogue, ...]
    references: Mapping[str, str]  # the marked spans, where there are any
    odd: tuple[Problem, ...]

    def groups(self) -> list[Group]:
        """The topics, those whose dialogues have the same text together."""
        found: dict[str, list[Dialogue]] = {}
        for dialogue in self.dialogues:
            found.setdefault(dialogue.text, []).append(dialogue)
        return [tuple(group) for group in found.values()]


def read_topics(path: Path) -> RcdTopics:
    """The topics of a file.

    Raises `InvalidInputError` listing all of: a topic without a number or without dialogue, a number that is no single
    word, a number that stands twice; and for a file that holds no topic.
    """
    data, odd, reader = read_utf8(path), [], _Reader()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("cp1252", "replace")
        odd.append(Problem("file", f"is not UTF-8 ({error}): read as Windows-1252"))
    with locate_errors(path):
        reader.feed(text)
        reader.close()
        if wrong := list(_find_problems(reader.tops)):
            raise InvalidInputError("\n".join(["holds topics that cannot be used:", *wrong]))
        if not reader.tops:
            what = "holds no topic" if reader.tags else "is not XML"
            raise InvalidInputError(what, remedy="Topics of RCD-2020 are <top> elements with <num>, <desc>.")
    dialogues = tuple(Dialogue(top.id, top.fields.get("movie", ""), tuple(top.utterances)) for top in reader.tops)
    references = {top.id: title for top in reader.tops if (title := top.fields.get("title"))}
    odd += [Problem("file", what) for what in reader.odd]
    odd += [Problem(f"topic {top.id}", what) for top in reader.tops for what in dict.fromkeys(top.odd)]
    odd += [
        Problem(f"topic {dialogue.id}", f"the title {title!r} does not stand in the dialogue")
        for dialogue in dialogues
        if (title := references.get(dialogue.id)) and title not in dialogue.text
    ]
    return RcdTopics(dialogues, references, tuple(odd))


@dataclass(slots=True)
class _Top:
    """A topic while it is read."""

    line: int
    fields: dict[str, str] = field(default_factory=dict)
    utterances: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.fields.get("num", "")


def _find_problems(tops: Sequence[_Top]) -> Iterator[str]:
    seen: set[str] = set()
    for top in tops:
        where = f"  topic {top.id!r} (line {top.line})" if top.id else f"  the topic in line {top.line}"
        if not top.id:
            yield f"{where} has no number"
        elif len(top.id.split()) > 1:
            yield f"{where}: its number is no single word"
        elif top.id in seen:
            yield f"{where}: its number stands twice"
        if not top.utterances:
            yield f"{where} has no dialogue"
        seen.add(top.id)


class _Reader(TolerantHtmlParser):
    """Reads what can be read. An opening tag ends the field before it; text belongs to the field opened last.

    Numbers of paragraphs, `<p pno="3">` or `<pno>3</pno>`, are no part of the text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tops: list[_Top] = []
        self.odd: list[str] = []
        self.tags = 0
        self._open = ""
        self._inside = False  # of a topic
        self._in_number = False  # of a paragraph, <pno>, which nobody says
        self._text: list[str] = []

    def set_cdata_mode(self, elem: str, **_: Any) -> None:
        """No tag here holds text alone, as a `title` of HTML does."""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags += 1
        self._in_number = tag == "pno"
        if tag in FIELDS + FRAME:
            self._finish_field(tag if tag in FIELDS else "", closed=self._open in ("", "desc"))
        elif tag != "pno":
            self._note_problem(f"the tag <{tag}> is not known: left out, its text kept")
        if tag == "top":
            if self._inside:
                self._note_problem("<top> is not closed")
            self.tops.append(_Top(self.getpos()[0]))
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._in_number = False
        if tag == self._open or tag in (*FRAME, "desc"):
            self._finish_field("desc" if tag == "p" else "", closed=self._open in ("", "desc", tag))
            self._inside = self._inside and tag not in FRAME

    def handle_data(self, data: str) -> None:
        if not self._in_number:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        if self._inside:
            self._note_problem("<top> is not closed")
        self._finish_field("", closed=True)

    def _finish_field(self, then: str, *, closed: bool) -> None:
        """End the open field; `then` is open after it."""
        if not closed:
            self._note_problem(f"<{self._open}> is not closed")
        text = self._clean_text("".join(self._text))
        name, self._open = self._open, then
        self._text.clear()
        if not text:
            return
        if not self._inside or not name:
            self._note_problem(f"text outside of all fields is left out: {text[:40]!r}")
        elif name in ("p", "desc"):
            self.tops[-1].utterances.append(text)
            if name == "desc":
                self._note_problem(f"text outside of <p> is taken for an utterance: {text[:40]!r}")
        elif name in self.tops[-1].fields:
            self._note_problem(f"a further <{name}> is left out: {text[:40]!r}")
        else:
            self.tops[-1].fields[name] = text

    def _clean_text(self, text: str) -> str:
        """The text with white space folded and without characters that cannot be seen."""
        seen = [sign for sign in text if sign.isspace() or unicodedata.category(sign) not in ("Cc", "Cf")]
        if len(seen) < len(text):
            self._note_problem("characters that cannot be seen are left out")
        if "\ufffd" in text:
            self._note_problem("has characters that were lost before (U+FFFD)")
        return " ".join("".join(seen).split())

    def _note_problem(self, what: str) -> None:
        (self.tops[-1].odd if self._inside else self.odd).append(what)
