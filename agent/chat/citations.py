"""The sources of an answer as a person opens them: numbered as they are cited, and marked where they say it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from indexes.text.analysis import extract_stems
from indexes.text.sentences import split_sentences
from schemas.records import Passage, TurnResult

CharacterSpan = tuple[int, int]  # where a piece of a text begins and ends


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of a passage; marked where a sentence of the answer stands on it."""

    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A cited passage. Its pieces, one after the other, are its whole text."""

    number: int  # in the order of first citation, from 1
    rank: int  # in the ranking, from 1
    passage: Passage
    pieces: tuple[TextPiece, ...]

    @property
    def quotes(self) -> tuple[str, ...]:
        """What the answer stands on."""
        return tuple(" ".join(piece.text.split()) for piece in self.pieces if piece.marked)


def cited_sources(answered: TurnResult) -> tuple[Source, ...]:
    """The passages that an answer cites."""
    passages = {passage.id: passage for passage in answered.passages}
    ranks = {hit.id: rank for rank, hit in enumerate(answered.hits, start=1)}
    citing: dict[str, list[str]] = {}
    for sentence in answered.response.sentences:
        for id in sentence.passage_ids:
            citing.setdefault(id, []).append(sentence.text)
    return tuple(
        Source(number, ranks[id], passages[id], tuple(_cut_at_marks(passages[id].text, said)))
        for number, (id, said) in enumerate(citing.items(), start=1)
    )


def _cut_at_marks(text: str, said: Iterable[str]) -> Iterator[TextPiece]:
    """A text cut where its marks begin and end."""
    place = 0
    for start, end in sorted(
        filter(None, (_find_verbatim(sentence, text) or _find_most_similar(sentence, text) for sentence in said))
    ):
        if start > place:
            yield TextPiece(text[place:start], marked=False)
        if end > place:
            yield TextPiece(text[max(start, place) : end], marked=True)
        place = max(place, end)
    if text[place:]:
        yield TextPiece(text[place:], marked=False)


def _find_verbatim(sentence: str, text: str) -> CharacterSpan | None:
    """Where a sentence stands word for word, however the text is spaced; its full stop may be ours."""
    words = sentence.removesuffix(".").split()
    found = re.search(r"\s+".join(map(re.escape, words)) + r"\.?", text) if words else None
    return found.span() if found else None


def _find_most_similar(sentence: str, text: str) -> CharacterSpan | None:
    """Where the text has the sentence that shares most words: a model may have left some out."""
    wanted = set(extract_stems(sentence))
    nearest = max(split_sentences(text), key=lambda other: len(wanted & set(extract_stems(other))), default="")
    return _find_verbatim(nearest, text)
