"""The sources of an answer: the passages it cites, and which of their sentences say so."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.sentences import split_sentences
from agent.support import unsupported
from schemas.records import Answered, Passage


@dataclass(frozen=True, slots=True)
class Source:
    """A cited passage under its number in the answer; its sentences, each with whether the answer rests on it."""

    number: int
    passage: Passage
    sentences: tuple[tuple[str, bool], ...]


def sources_of(answered: Answered) -> Iterator[Source]:
    """The cited passages in the order of their first citation."""
    passages = {passage.id: passage for passage in answered.passages}
    for number, id in enumerate(answered.response.used, start=1):
        claims = [said.text for said in answered.response.sentences if id in said.passage_ids]
        sentences = tuple((text, _rests(claims, text)) for text in split_sentences(passages[id].text))
        yield Source(number, passages[id], sentences)


def _rests(claims: list[str], text: str) -> bool:
    """Whether one of the claims is taken from this sentence."""
    return any(not unsupported(claim, text) for claim in claims)


def marked(answered: Answered) -> str:
    """The answer with the numbers of its sources."""
    numbers = {id: str(number) for number, id in enumerate(answered.response.used, start=1)}
    return " ".join(
        f"{sentence.text} [{', '.join(numbers[id] for id in sentence.passage_ids)}]"
        if sentence.passage_ids
        else sentence.text
        for sentence in answered.response.sentences
    )
