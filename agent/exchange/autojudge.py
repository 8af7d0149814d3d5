"""Answers as TREC Auto-Judge reads them: JSON lines, one answer each, sentences with the ids of what they cite.

    {"metadata": {"team_id": "us", "run_id": "ours", "topic_id": "9-1_1", "narrative_id": "9-1_1",
                  "narrative": "How long does rice bread keep?", "type": "automatic"},
     "responses": [{"text": "Rice bread keeps for two days.", "citations": ["bread:1"]}],
     "references": ["bread:1", "bread:2"]}

Citations are read in all three forms of the RAG tracks: a list of ids, ids with a score, or places in `references`
from 0; a file may say `answer` for `responses`, and name the topic in any of its fields.

source: `autojudge_base.report` and `track_specs.yml` of autojudge-base 1.0.0 (trec-auto-judge/auto-judge-base).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from agent.exchange.cited_answers import CitedAnswer, cite_answers
from agent.tracks.lenient_reading import IS_ID, decode_leniently
from agent.tracks.oddities import Oddities
from schemas.errors import InvalidInputError
from schemas.records import Mode, RunInfo, Sentence, TurnResult
from schemas.wire import Data, decode

Id = Annotated[str, Meta(extra=IS_ID)]
TOPIC_FIELDS = ("topic_id", "narrative_id", "request_id")
ANSWER_FIELDS = ("responses", "answer")


class Metadata(Struct, omit_defaults=True):
    """Whose answer it is, and to what."""

    team_id: str = ""
    run_id: str = ""
    topic_id: Id = ""
    narrative_id: Id = ""
    request_id: Id = ""
    narrative: str | None = None
    type: str | None = None


class WireSentence(Struct):
    """A sentence and what it cites."""

    text: str
    citations: Any = None


class Line(Struct, omit_defaults=True):
    """One answer."""

    metadata: Metadata
    responses: list[WireSentence] | None = None
    answer: list[WireSentence] | None = None
    references: list[Id] | None = None


def detects(fields: Mapping[str, msgspec.Raw]) -> bool:
    """Whether the first line of a file is such an answer."""
    if "turn_id" in fields or not any(name in fields for name in ANSWER_FIELDS):
        return False
    try:
        metadata = decode(fields.get("metadata", msgspec.Raw(b"{}")), dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return any(name in metadata for name in TOPIC_FIELDS)


def encode_turns(answered: Iterable[TurnResult], info: RunInfo) -> Iterator[bytes]:
    """The lines of a run's first answers."""
    return map(encode, cite_answers(answered, info))


def encode(answer: CitedAnswer) -> bytes:
    """One line."""
    run = answer.run
    metadata = Metadata(run.team, run.name, answer.turn_id, answer.turn_id, "", answer.question, run.type)
    sentences = [WireSentence(sentence.text, list(sentence.passage_ids)) for sentence in answer.sentences]
    return msgspec.json.encode(Line(metadata, sentences, references=list(answer.references))) + b"\n"


def decode_answer(data: Data | msgspec.Raw, where: str, oddities: Oddities) -> CitedAnswer:
    """What a line says. Raises `msgspec.DecodeError` for no answer, `InvalidInputError` for a citation of nothing."""
    line: Line = decode_leniently(data, Line, where, oddities)
    metadata = line.metadata
    turn_id = metadata.topic_id or metadata.narrative_id or metadata.request_id
    if not turn_id:
        raise InvalidInputError("names no topic", where=f"{where}.metadata")
    given = line.references or []
    sentences = tuple(
        Sentence(sentence.text, read_citations(sentence.citations, given, f"{where}.responses[{number}]"))
        for number, sentence in enumerate(line.responses or line.answer or ())
    )
    cited = (id for sentence in sentences for id in sentence.passage_ids)
    mode: Mode = next((mode for mode in get_args(Mode) if mode == metadata.type), "automatic")
    run = RunInfo(metadata.run_id, mode, metadata.team_id)
    return CitedAnswer(turn_id, metadata.narrative or "", sentences, tuple(dict.fromkeys((*given, *cited))), run)


def read_citations(citations: Any, references: list[str], where: str) -> tuple[str, ...]:
    """The ids that a sentence cites, best first. Raises `InvalidInputError` for a place that `references` lacks."""
    match citations:
        case None:
            return ()
        case dict() if all(isinstance(score, int | float) for score in citations.values()):
            return tuple(sorted(citations, key=citations.__getitem__, reverse=True))
        case list():
            return tuple(_read_citation(citation, references, where) for citation in citations)
    raise InvalidInputError(f"are no citations: {str(citations)[:80]}", where=where)


def _read_citation(citation: Any, references: list[str], where: str) -> str:
    if isinstance(citation, str):
        return citation
    if isinstance(citation, int) and 0 <= citation < len(references):
        return references[citation]
    raise InvalidInputError(f"cites {citation!r}, which is no place in `references`", where=where)
