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

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError

TAG = re.compile(r"<(/?)(topics|top|num|title|movie|desc|p)\b[^<>]*>", re.IGNORECASE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
MARKUP = re.compile(r"<[/!?a-z][^<>]*>", re.IGNORECASE)
Top = tuple[int, dict[str, str], list[str]]  # of a topic: its line, its fields, its utterances


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
    found = list(_read_tops(read_utf8(path).decode("utf-8", "replace")))
    if wrong := list(_find_problems(found)):
        raise InvalidInputError("\n".join(["holds topics that cannot be used:", *wrong]), where=str(path))
    if not found:
        remedy = "Topics of RCD-2020 are <top> elements with <num>, <desc>."
        raise InvalidInputError("holds no topic", where=str(path), remedy=remedy)
    dialogues = tuple(Dialogue(top.get("num", ""), top.get("movie", ""), tuple(said)) for _, top, said in found)
    return RcdTopics(dialogues, {top["num"]: top["title"] for _, top, _ in found if "title" in top})


def _read_tops(text: str) -> Iterator[Top]:
    """Whatever can be read: a tag of ours ends the field before it, whose first text counts; other markup is left out.

    Utterances stand in `p`, or in `desc` itself.
    """
    text = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    before, *rest = re.split(TAG, text)
    top: Top | None = None
    line = 1 + before.count("\n")
    for end, tag, content in zip(rest[::3], map(str.lower, rest[1::3]), rest[2::3], strict=True):
        if tag == "top" and not end:
            if top:
                yield top
            top = line, {}, []
        line += content.count("\n")
        said = " ".join(html.unescape(MARKUP.sub("", content)).split())
        if top and said:
            if (tag == "p") if end else (tag in ("p", "desc")):  # what follows a paragraph stands in `desc`
                top[2].append(said)
            elif not end:
                top[1].setdefault(tag, said)
    if top:
        yield top


def _find_problems(tops: Sequence[Top]) -> Iterator[str]:
    seen: set[str] = set()
    for line, fields, utterances in tops:
        id = fields.get("num", "")
        where = f"  topic {id!r} (line {line})" if id else f"  the topic in line {line}"
        if not id:
            yield f"{where} has no number"
        elif len(id.split()) > 1:
            yield f"{where}: its number is no single word"
        elif id in seen:
            yield f"{where}: its number stands twice"
        if not utterances:
            yield f"{where} has no dialogue"
        seen.add(id)
