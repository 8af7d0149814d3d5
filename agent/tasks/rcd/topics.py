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
written by hand, and need not be well-formed XML.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.tracks.oddities import locate_errors
from indexes.storage.files import read_utf8
from indexes.text.control_characters import TolerantHtmlParser
from schemas.errors import InvalidInputError

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

    def groups(self, equivalence: Path | None = None) -> list[Group]:
        """The topics of each scene together: those that the organisers' file joins, or else those of the same text."""
        scene_of = read_equivalence(equivalence) if equivalence else {each.id: each.text for each in self.dialogues}
        found: dict[object, list[Dialogue]] = {}
        for dialogue in self.dialogues:
            found.setdefault(scene_of.get(dialogue.id, dialogue.id), []).append(dialogue)
        return [tuple(group) for group in found.values()]


def read_equivalence(path: Path) -> dict[str, tuple[str, ...]]:
    """The scene of each topic number in a file whose lines are numbers of one scene; lines that share one are joined.

    Numbers stand between white space or commas, comments after `#`. Raises `InvalidInputError` where there is none.
    """
    scene_of: dict[str, tuple[str, ...]] = {}
    for line in read_utf8(path).decode("utf-8", "replace").splitlines():
        numbers = line.partition("#")[0].replace(",", " ").split()
        joined = tuple(dict.fromkeys(each for number in numbers for each in (*scene_of.get(number, ()), number)))
        scene_of |= dict.fromkeys(joined, joined)
    if not scene_of:
        raise InvalidInputError("holds no topic number", where=str(path), remedy="A line is `27 28` or `27,28`.")
    return scene_of


def read_topics(path: Path) -> RcdTopics:
    """The topics of a file.

    Raises `InvalidInputError` listing all of: a topic without a number or without dialogue, a number that is no single
    word, a number that stands twice; and for a file that holds no topic.
    """
    reader, data = _Reader(), read_utf8(path)
    with locate_errors(path):
        reader.feed(data.decode("utf-8", "replace"))
        reader.close()
        if wrong := list(_find_problems(reader.tops)):
            raise InvalidInputError("\n".join(["holds topics that cannot be used:", *wrong]))
        if not reader.tops:
            raise InvalidInputError(
                "holds no topic", remedy="Topics of RCD-2020 are <top> elements with <num>, <desc>."
            )
    dialogues = tuple(Dialogue(top.id, top.fields.get("movie", ""), tuple(top.utterances)) for top in reader.tops)
    return RcdTopics(dialogues, {top.id: title for top in reader.tops if (title := top.fields.get("title"))})


@dataclass(slots=True)
class _Top:
    """A topic while it is read."""

    line: int
    fields: dict[str, str] = field(default_factory=dict)
    utterances: list[str] = field(default_factory=list)

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
    """Reads what can be read. A tag of ours ends the field before it; text belongs to the field opened last."""

    def __init__(self) -> None:
        super().__init__()
        self.tops: list[_Top] = []
        self._field = ""
        self._text: list[str] = []

    def set_cdata_mode(self, elem: str, **_: Any) -> None:
        """No tag here holds text alone, as a `title` of HTML does."""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in FIELDS + FRAME:
            self._open_field(tag)
        if tag == "top":
            self.tops.append(_Top(self.getpos()[0]))

    def handle_endtag(self, tag: str) -> None:
        if tag in FIELDS + FRAME:
            self._open_field("desc" if tag == "p" else "")

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def close(self) -> None:
        super().close()
        self._open_field("")

    def _open_field(self, name: str) -> None:
        """End the open field, whose first text counts, and begin another. Utterances may stand in `desc` itself."""
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if text and self.tops:
            if self._field in ("p", "desc"):
                self.tops[-1].utterances.append(text)
            elif self._field in FIELDS:
                self.tops[-1].fields.setdefault(self._field, text)
        self._field = name
