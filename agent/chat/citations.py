"""The sources of an answer for display: numbered in the order of citation, with the cited sentences marked."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent.turn.extractive_answer import says_not_found
from indexes.text.analysis import extract_stems
from indexes.text.sentences import split_sentences
from schemas.records import Mark, Passage, Sentence, TurnResult

UNSURE_NOTE = "Not sure that this answers the question."  # above an answer whose chance is small
CharacterSpan = tuple[int, int]  # start and end of a piece of a text


class TextPiece(NamedTuple):
    """A piece of a passage; marked where a sentence of the answer is from it."""

    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that an answer cites, or what came near. Its pieces, joined, are its whole text."""

    number: int  # in the order of first citation, from 1
    rank: int  # in the ranking, from 1; 0 for one that was read without a search
    passage: Passage
    pieces: tuple[TextPiece, ...]
    cited: bool = True  # by the answer itself
    marks: tuple[Mark, ...] = ()  # the passage's own, of the sentences that it is cited for

    @property
    def name(self) -> str:
        """The document and where in it these sentences stand: `lease.md:27-28`, `lease.docx:Keys`."""
        places = list(dict.fromkeys(mark.place for mark in self.marks))
        if not places:
            return self.passage.id
        place = "-".join(dict.fromkeys((places[0], places[-1]))) if places[0].isdigit() else ", ".join(places)
        return f"{self.passage.document}:{place}"

    @property
    def title(self) -> str:
        """The passage's title and the headings within the passage above these sentences."""
        below = dict.fromkeys(": ".join(mark.headings) for mark in self.marks)
        return ": ".join(filter(None, (self.passage.title, ", ".join(filter(None, below)))))

    @property
    def quotes(self) -> tuple[str, ...]:
        return tuple(" ".join(piece.text.split()) for piece in self.pieces if piece.marked)


def cited_sources(answered: TurnResult) -> tuple[Source, ...]:
    return tuple(source for source in shown_sources(answered) if source.cited)


def describe_source(source: Source) -> dict[str, Any]:
    """A source as other programs are given it."""
    return {
        "number": source.number,
        "id": source.passage.id,
        "title": source.title,
        "place": source.name,
        "url": source.passage.url,
        "quotes": list(source.quotes),
    }


def describe_answer(question: str, answered: TurnResult) -> dict[str, Any]:
    """A turn as scripts are given it: the answer, its sentences with the numbers of their sources, and the sources."""
    response, sources = answered.response, cited_sources(answered)
    numbers = {source.passage.id: source.number for source in sources}
    return {
        "question": question,
        "searched_for": answered.query.standalone,
        "answered": bool(response.used) and not says_not_found(response),
        "unsure": response.is_unsure,
        "chance": None if response.chance is None else round(response.chance, 2),
        "direct": response.direct,
        "sentences": [
            {"text": sentence.text, "sources": [numbers[id] for id in sentence.passage_ids]}
            for sentence in response.sentences
        ],
        "sources": [describe_source(source) for source in sources],
    }


def shown_sources(answered: TurnResult) -> tuple[Source, ...]:
    """The passages that an answer cites, then those of what came near, in which nothing is marked."""
    response = answered.response
    passages = {passage.id: passage for passage in answered.passages}
    ranks = {hit.id: rank for rank, hit in enumerate(answered.hits, start=1)}
    said, near = _group_by_passage(response.sentences), _group_by_passage(response.nearby)
    return tuple(
        Source(
            number,
            ranks.get(id, 0),
            passages[id],
            tuple(_cut_at_marks(passages[id].text, said.get(id, ()))),
            id in said,
            _find_marks(passages[id], said.get(id) or near[id]),
        )
        for number, id in enumerate({**said, **near}, start=1)
    )


def _group_by_passage(sentences: Iterable[Sentence]) -> dict[str, list[str]]:
    citing: dict[str, list[str]] = {}
    for sentence in sentences:
        for id in sentence.passage_ids:
            citing.setdefault(id, []).append(sentence.text)
    return citing


def _find_marks(passage: Passage, sentences: Iterable[str]) -> tuple[Mark, ...]:
    if not passage.marks:
        return ()
    text = passage.text
    spans = [tuple(len("".join(text[:at].split())) for at in span) for span in _find_spans(text, sentences)]
    ends = [*(mark.start for mark in passage.marks[1:]), len(text)]
    return tuple(
        mark
        for mark, end in zip(passage.marks, ends, strict=True)
        if any(start < end and mark.start < stop for start, stop in spans)
    )


def _find_spans(text: str, sentences: Iterable[str]) -> list[CharacterSpan]:
    """Where these sentences stand in a text, in order."""
    found = (_find_verbatim(sentence, text) or _find_most_similar(sentence, text) for sentence in sentences)
    return sorted(filter(None, found))


def _cut_at_marks(text: str, sentences: Iterable[str]) -> Iterator[TextPiece]:
    place = 0
    for start, end in _find_spans(text, sentences):
        if start > place:
            yield TextPiece(text[place:start], marked=False)
        if end > place:
            yield TextPiece(text[max(start, place) : end], marked=True)
        place = max(place, end)
    if text[place:]:
        yield TextPiece(text[place:], marked=False)


def _find_verbatim(sentence: str, text: str) -> CharacterSpan | None:
    """Where a text has a sentence word for word. Spaces may differ, and the full stop may be missing."""
    words = sentence.removesuffix(".").split()
    found = re.search(r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)\.?", text) if words else None
    return found.span() if found else None


def _find_most_similar(sentence: str, text: str) -> CharacterSpan | None:
    """Where the sentence of the text is that has most of its words, and half at least: a model may change some."""
    words = set(extract_stems(sentence))
    shared = {other: len(words & set(extract_stems(other))) for other in split_sentences(text)}
    most_similar = max(shared, key=lambda other: (shared[other], -len(other)), default="")
    return _find_verbatim(most_similar, text) if words and shared.get(most_similar, 0) * 2 >= len(words) else None
