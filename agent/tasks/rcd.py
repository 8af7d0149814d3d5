"""RCD-2020 (FIRE 2020, Retrieval from Conversational Dialogues): finds what needs background, and passages about it.

A topic is an excerpt of a film's dialogue:

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

Spans are found by a rule without a model. A candidate is a run of one to four words of one utterance, word for word,
whose first and last are no stop words. The rule weighs whether its words are names, whether it has two, and how far
from the middle of the excerpt it stands: the excerpts were cut around the spans, about five utterances on each side.
`benchmarks/rcd_spans.py --fit` derives its numbers. Passages are searched for by the span, and with little weight by
its dialogue.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.runs.given_ranking import format_trec_lines
from indexes.ranking.hybrid import HybridRetriever
from indexes.storage.files import check_writable, read_utf8, write_atomically
from indexes.text.analysis import load_stop_words
from schemas.errors import InvalidInputError
from schemas.records import Hit

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


Numbers = npt.NDArray[np.float64]
LONGEST = 4  # words of a candidate
# What the words and the meaning of the dialogue weigh beside the span's. Not measured: the collection was not at hand.
WORDS, MEANING = 0.02, 0.2
LOOK_BACK = 100  # characters before a candidate in which the end of a sentence is looked for
# Letters and digits, with what joins them: don't, gung-ho, AT&T, N.S.A, 1,000. Another full stop ends a word.
WORD = re.compile(r"[^\W_]+(?:(?:['’&-]|(?<=\b\w)\.(?=\w\b)|(?<=\d)[.,](?=\d))[^\W_]+)*")
SENTENCE_BEFORE = re.compile(r"(^|[.?!:;…\"“(])\W*$")


@dataclass(frozen=True, slots=True)
class Span:
    """A candidate, verbatim: it begins `start` characters into the utterance with the number `utterance` (from 0)."""

    text: str
    utterance: int
    start: int

    def overlaps(self, other: "Span") -> bool:
        return (
            self.utterance == other.utterance
            and self.start < other.start + len(other.text)
            and other.start < self.start + len(self.text)
        )


Score = Callable[[Sequence[Span], Dialogue], Sequence[float]]  # higher is better, comparable within one dialogue only


def write_spans(topics: Path, out: Path, *, overwrite: bool) -> int:
    """Write `num<TAB>span` for every topic of a file, and return how many there are."""
    check_writable(out, overwrite)
    spans = find_spans(read_topics(topics))
    write_atomically(out, (f"{id}\t{span}\n".encode() for id, span in spans.items()))
    return len(spans)


def read_spans(path: Path, topics: RcdTopics) -> dict[str, str]:
    """Spans by topic number. Raises `InvalidInputError` listing every line that cannot be used."""
    unread = {dialogue.id for dialogue in topics.dialogues}
    found: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(read_utf8(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        id, _, span = (part.strip() for part in line.partition("\t"))
        if not id or not span or "\t" in span:
            wrong.append(f"  line {number} is not `num<TAB>span`: {line[:80]!r}")
        elif id in found:
            wrong.append(f"  line {number}: topic {id} has a span already")
        elif id not in unread:
            wrong.append(f"  line {number}: there is no topic {id}")
        found.setdefault(id, span)
    if wrong:
        raise InvalidInputError("\n".join(["holds lines that cannot be used:", *wrong]), where=str(path))
    return found


def find_spans(topics: RcdTopics) -> dict[str, str]:
    """A span for every topic number, in the order of the file. Raises `InvalidInputError` as `choose_spans` does."""
    pairs = (pair for group in topics.groups() for pair in zip(group, choose_spans(group, RULE), strict=True))
    found = {dialogue.id: span.text for dialogue, span in pairs}
    return {dialogue.id: found[dialogue.id] for dialogue in topics.dialogues}


def choose_spans(group: Group, score: Score) -> list[Span]:
    """One span for each topic of the group, all different, in the order of the text; without overlaps where possible.

    Raises `InvalidInputError` where the dialogue has fewer.
    """
    dialogue = group[0]
    spans = candidate_spans(dialogue)
    scores = score(spans, dialogue)
    ranked = [spans[n] for n in sorted(range(len(spans)), key=lambda n: -scores[n])]
    chosen: list[Span] = []
    for may_overlap in (False, True):
        for span in ranked:
            if len(chosen) == len(group):
                break
            if not any(span.text.lower() == o.text.lower() or (span.overlaps(o) and not may_overlap) for o in chosen):
                chosen.append(span)
    if len(chosen) < len(group):
        what = f"share a dialogue that has only {len(chosen)} different phrases"
        raise InvalidInputError(what, where=f"topics {', '.join(topic.id for topic in group)}")
    return sorted(chosen, key=lambda span: (span.utterance, span.start, len(span.text)))


def candidate_spans(dialogue: Dialogue) -> list[Span]:
    """All candidates in the order of the text; the utterances themselves where there is none."""
    found = [
        Span(text, number, first.start())
        for number, utterance in enumerate(dialogue.utterances)
        for words in [list(WORD.finditer(utterance))]
        for place, first in enumerate(words)
        for last in words[place : place + LONGEST]
        for text in [utterance[first.start() : last.end()]]
        if not is_stop_word(first.group()) and not is_stop_word(last.group()) and " ".join(WORD.findall(text)) == text
    ]
    return found or [Span(utterance, number, 0) for number, utterance in enumerate(dialogue.utterances)]


def weigh_features(weights: Sequence[float]) -> Score:
    """What scores candidates, from what each feature weighs."""
    return lambda spans, dialogue: (span_features(spans, dialogue) @ np.asarray(weights)).tolist()


RULE = weigh_features((1.44, 0.9, -0.46, 1.65))


def span_features(spans: Sequence[Span], dialogue: Dialogue) -> Numbers:
    """A row a span, a column a feature.

    names: the share of its words but stop words with a capital that does not open a sentence. two words: whether it
    has two. distance: utterances between it and the middle of the excerpt, at most 4. middle: whether it stands in the
    middle utterance, or in one of the middle two.
    """
    middle = (len(dialogue.utterances) - 1) / 2
    return np.asarray([_compute_features(span, dialogue.utterances[span.utterance], middle) for span in spans])


def _compute_features(span: Span, utterance: str, middle: float) -> list[float]:
    words = WORD.findall(span.text)
    content = [word for word in words if not is_stop_word(word)] or [span.text]
    names = [word[0].isupper() for word in content]
    if SENTENCE_BEFORE.search(utterance[max(0, span.start - LOOK_BACK) : span.start]):
        names[0] = False
    away = abs(span.utterance - middle)
    return [sum(names) / len(names), float(len(words) == 2), min(away, 4.0), float(away <= 0.5)]


def is_stop_word(word: str) -> bool:
    """Whether it is a stop word of spaCy's, alone or before an apostrophe, or a negation such as "don't"."""
    plain = word.lower().replace("’", "'")
    return plain.partition("'")[0] in load_stop_words() or plain.endswith("n't")


def rank_file(
    topics: Path, spans: Path | None, retriever: HybridRetriever, out: Path, k: int, *, overwrite: bool
) -> int:
    """Write a TREC run, `num Q0 id rank score tag`, scores strictly decreasing, and return the number of topics.

    Spans are those of a file, or else found. Raises `InvalidInputError` naming the topics that have none.
    """
    check_writable(out, overwrite)
    known = read_topics(topics)
    wanted = read_spans(spans, known) if spans else find_spans(known)
    if missing := [dialogue.id for dialogue in known.dialogues if dialogue.id not in wanted]:
        raise InvalidInputError(f"no span for topic {', '.join(missing)}", where=str(spans))

    def rank(dialogue: Dialogue) -> tuple[Hit, ...]:
        span, text = (wanted[dialogue.id], 1.0), dialogue.text
        return retriever.find([span, (text, WORDS)], [span, (text, MEANING)], k)

    lines = (format_trec_lines(dialogue.id, rank(dialogue), "convagent") for dialogue in known.dialogues)
    write_atomically(out, (line.encode() for line in lines))
    return len(known.dialogues)
