"""The sources of an answer as a person opens them: numbered as they are cited, and marked where they say it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.sentences import split_sentences
from indexes.words import stems
from schemas.records import Answered, Passage

Stretch = tuple[int, int]  # where a piece of a text begins and ends


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a passage; marked where a sentence of the answer stands on it."""

    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A cited passage. Its pieces, one after the other, are its whole text."""

    number: int  # in the order of first citation, from 1
    rank: int  # in the ranking, from 1
    passage: Passage
    pieces: tuple[Piece, ...]

    @property
    def quotes(self) -> tuple[str, ...]:
        """What the answer stands on."""
        return tuple(" ".join(piece.text.split()) for piece in self.pieces if piece.marked)


def sources(answered: Answered) -> tuple[Source, ...]:
    """The passages that an answer cites."""
    passages = {passage.id: passage for passage in answered.passages}
    ranks = {hit.id: rank for rank, hit in enumerate(answered.hits, start=1)}
    citing: dict[str, list[str]] = {}
    for sentence in answered.response.sentences:
        for id in sentence.passage_ids:
            citing.setdefault(id, []).append(sentence.text)
    return tuple(
        Source(number, ranks[id], passages[id], tuple(_pieces(passages[id].text, said)))
        for number, (id, said) in enumerate(citing.items(), start=1)
    )


def _pieces(text: str, said: Iterable[str]) -> Iterator[Piece]:
    """A text cut where its marks begin and end."""
    place = 0
    for start, end in sorted(filter(None, (_stretch(sentence, text) or _nearest(sentence, text) for sentence in said))):
        if start > place:
            yield Piece(text[place:start], marked=False)
        if end > place:
            yield Piece(text[max(start, place) : end], marked=True)
        place = max(place, end)
    if text[place:]:
        yield Piece(text[place:], marked=False)


def _stretch(sentence: str, text: str) -> Stretch | None:
    """Where a sentence stands word for word, however the text is spaced; its full stop may be ours."""
    words = sentence.removesuffix(".").split()
    found = re.search(r"\s+".join(map(re.escape, words)) + r"\.?", text) if words else None
    return found.span() if found else None


def _nearest(sentence: str, text: str) -> Stretch | None:
    """Where the text has the sentence that shares most words: a model may have left some out."""
    wanted = set(stems(sentence))
    nearest = max(split_sentences(text), key=lambda other: len(wanted & set(stems(other))), default="")
    return _stretch(nearest, text)
