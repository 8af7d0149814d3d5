"""Answers as Ragnarök writes them and TREC RAG 2024 took them: JSON lines, citations as places in `references` from 0.

    {"run_id": "ours", "topic_id": "9-1_1", "topic": "How long does rice bread keep?",
     "references": ["bread:1", "bread:2"], "response_length": 6,
     "answer": [{"text": "Rice bread keeps for two days.", "citations": [0]}]}

The Nuggetizer assigns nuggets to such answers. `response_length` is in words, as the track's guidelines have it
(Ragnarök itself writes characters); reading, it is not looked at.

source: `ragnarok.data` of pyragnarok 0.0.1 (castorini/ragnarok), and the README of nuggetizer 0.0.5.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agent.exchange.autojudge import read_citations
from agent.exchange.cited_answers import CitedAnswer, cite_answers
from agent.tracks.lenient_reading import IS_ID, absent, decode_leniently
from agent.tracks.oddities import Oddities
from indexes.text.response_length import count_whitespace_words
from schemas.records import RunInfo, Sentence, TurnResult
from schemas.wire import Data

Id = Annotated[str, Meta(extra=IS_ID)]


class WireSentence(Struct):
    """A sentence and what it cites."""

    text: str
    citations: Annotated[list[Any], absent([], "nothing is cited")]


class Line(Struct):
    """One answer."""

    topic_id: Id
    topic: str
    references: list[Id]
    answer: list[WireSentence]
    response_length: int | None = None
    run_id: str = ""


def detects(fields: Mapping[str, msgspec.Raw]) -> bool:
    """Whether the first line of a file is such an answer."""
    return {"topic_id", "references", "answer"} <= fields.keys()


def encode_turns(answered: Iterable[TurnResult], info: RunInfo) -> Iterator[bytes]:
    """The lines of a run's first answers."""
    return map(encode, cite_answers(answered, info))


def encode(answer: CitedAnswer) -> bytes:
    """One line."""
    places = {id: place for place, id in enumerate(answer.references)}
    sentences = [WireSentence(said.text, [places[id] for id in said.passage_ids]) for said in answer.sentences]
    words = sum(count_whitespace_words(sentence.text) for sentence in answer.sentences)
    references = list(answer.references)
    line = Line(answer.turn_id, answer.question, references, sentences, words, answer.run.name)
    return msgspec.json.encode(line) + b"\n"


def decode_answer(data: Data | msgspec.Raw, where: str, oddities: Oddities) -> CitedAnswer:
    """What a line says. Raises `msgspec.DecodeError` for no answer, `InvalidInputError` for a citation of nothing."""
    line: Line = decode_leniently(data, Line, where, oddities)
    sentences = tuple(
        Sentence(sentence.text, read_citations(sentence.citations, line.references, f"{where}.answer[{number}]"))
        for number, sentence in enumerate(line.answer)
    )
    cited = (id for sentence in sentences for id in sentence.passage_ids)
    references = tuple(dict.fromkeys((*line.references, *cited)))
    return CitedAnswer(line.topic_id, line.topic, sentences, references, RunInfo(line.run_id))
