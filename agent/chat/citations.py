"""The sources of an answer for display: numbered in the order of citation, with the cited sentences marked."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from indexes.text.analysis import extract_stems
from indexes.text.sentences import split_sentences
from schemas.records import Passage, TurnResult

CharacterSpan = tuple[int, int]  # start and end of a piece of a text


@dataclass(frozen=True, slots=True)
class TextPiece:
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

    @property
    def quotes(self) -> tuple[str, ...]:
        """The marked pieces, on one line each."""
        return tuple(" ".join(piece.text.split()) for piece in self.pieces if piece.marked)


def cited_sources(answered: TurnResult) -> tuple[Source, ...]:
    """The passages that an answer cites."""
    return tuple(source for source in shown_sources(answered) if source.cited)


def shown_sources(answered: TurnResult) -> tuple[Source, ...]:
    """The passages that an answer cites, then those of what came near, in which nothing is marked."""
    response = answered.response
    passages = {passage.id: passage for passage in answered.passages}
    ranks = {hit.id: rank for rank, hit in enumerate(answered.hits, start=1)}
    said: dict[str, list[str]] = {}
    for sentence in response.sentences:
        for id in sentence.passage_ids:
            said.setdefault(id, []).append(sentence.text)
    shown = dict.fromkeys((*said, *(id for sentence in response.nearby for id in sentence.passage_ids)))
    return tuple(
        Source(
            number,
            ranks.get(id, 0),
            passages[id],
            tuple(_cut_at_marks(passages[id].text, said.get(id, ()))),
            id in said,
        )
        for number, id in enumerate(shown, start=1)
    )


def _cut_at_marks(text: str, sentences: Iterable[str]) -> Iterator[TextPiece]:
    """Cut a text into pieces, with those that these sentences are from marked."""
    place = 0
    for start, end in sorted(
        filter(None, (_find_verbatim(sentence, text) or _find_most_similar(sentence, text) for sentence in sentences))
    ):
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
