"""Answers sentence by sentence with what each cites, as TREC Auto-Judge and Ragnarök have them: written, read as runs.

Auto-Judge reads JSON lines, one answer each:

    {"metadata": {"team_id": "us", "run_id": "ours", "topic_id": "9-1_1", "narrative_id": "9-1_1",
                  "narrative": "How long does rice bread keep?", "type": "automatic"},
     "responses": [{"text": "Rice bread keeps for two days.", "citations": ["bread:1"]}],
     "references": ["bread:1", "bread:2"]}

Citations are read in all three forms of the RAG tracks: a list of ids, ids with a score, or places in `references`
from 0; a file may say `answer` for `responses`, and name the topic in any of its fields.

Ragnarök writes what TREC RAG 2024 took and the Nuggetizer reads, with citations as places:

    {"run_id": "ours", "topic_id": "9-1_1", "topic": "How long does rice bread keep?",
     "references": ["bread:1", "bread:2"], "response_length": 6,
     "answer": [{"text": "Rice bread keeps for two days.", "citations": [0]}]}

`response_length` is in words, as the track's guidelines have it (Ragnarök itself writes characters).

source: `autojudge_base.report` and `track_specs.yml` of autojudge-base 1.0.0 (trec-auto-judge/auto-judge-base);
`ragnarok.data` of pyragnarok 0.0.1 (castorini/ragnarok), and the README of nuggetizer 0.0.5.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from agent.tracks import run_files
from agent.tracks.lenient_reading import IS_ID, decode_leniently
from agent.tracks.oddities import Oddities
from agent.tracks.registry import load_edition
from agent.tracks.rules import EditionLimits
from agent.tracks.run_layouts import JSON_ARRAY, JSON_LINES, RunLayout
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn
from indexes.text.response_length import count_whitespace_words
from schemas.errors import InvalidInputError
from schemas.records import Hit, Mode, RunInfo, TurnResult
from schemas.wire import Data, decode

Id = Annotated[str, Meta(extra=IS_ID)]
Fields = Mapping[str, msgspec.Raw]
FORMS = ("autojudge", "ragnarok")
LAYOUTS: tuple[RunLayout, ...] = (JSON_LINES, JSON_ARRAY)
LIMITS = EditionLimits(tokens=None, passages=None, statements=False, responses=1, collection="any")


class CitedSentence(Struct):
    """A sentence and what it cites."""

    text: str
    citations: Any = None


class Metadata(Struct, omit_defaults=True):
    """Whose answer it is, and to what."""

    team_id: str = ""
    run_id: str = ""
    topic_id: Id = ""
    narrative_id: Id = ""
    request_id: Id = ""
    narrative: str | None = None
    type: str | None = None


class AutojudgeLine(Struct, omit_defaults=True):
    """One answer in the form of Auto-Judge."""

    metadata: Metadata
    responses: list[CitedSentence] | None = None
    answer: list[CitedSentence] | None = None
    references: list[Id] | None = None


class RagnarokLine(Struct):
    """One answer in the form of Ragnarök."""

    topic_id: Id
    topic: str
    references: list[Id]
    answer: list[CitedSentence]
    response_length: int | None = None
    run_id: str = ""


def encode_autojudge(turn: TurnResult, info: RunInfo) -> bytes:
    """The line of a turn's first answer."""
    metadata = Metadata(info.team, info.name, turn.turn_id, turn.turn_id, "", turn.query.standalone, info.type)
    sentences = [CitedSentence(said.text, list(said.passage_ids)) for said in turn.response.sentences]
    return msgspec.json.encode(AutojudgeLine(metadata, sentences, references=_list_references(turn))) + b"\n"


def encode_ragnarok(turn: TurnResult, info: RunInfo) -> bytes:
    """The line of a turn's first answer."""
    references = _list_references(turn)
    said = turn.response.sentences
    sentences = [CitedSentence(each.text, [references.index(id) for id in each.passage_ids]) for each in said]
    words = sum(count_whitespace_words(sentence.text) for sentence in said)
    line = RagnarokLine(turn.turn_id, turn.query.standalone, references, sentences, words, info.name)
    return msgspec.json.encode(line) + b"\n"


def _list_references(turn: TurnResult) -> list[str]:
    """The passages that were read for an answer or cited. Raises `InvalidInputError` for a turn without an answer."""
    if not turn.responses:
        raise InvalidInputError("has no response", where=f"turn {turn.turn_id}")
    return list(dict.fromkeys((*(passage.id for passage in turn.passages), *turn.response.used)))


def read_any_run(data: Data, oddities: Oddities) -> tuple[str, RunInfo, Iterator[RunTurn]]:
    """As `read_detected_run`, and answers in the form of another tool, whose name stands in place of an edition's."""
    for layout in LAYOUTS:
        if form := _detect_form(layout.read_first_fields(data)):
            return form, RunInfo(""), _read_answers(form, layout, data, oddities)
    return run_files.read_detected_run(data, oddities)


def find_limits(form: str) -> EditionLimits:
    """What runs of an edition, or of another tool's form, say and must keep."""
    return LIMITS if form in FORMS else load_edition(form).limits


def _detect_form(fields: Fields) -> str:
    """By the first line of a file; "" where it is no such answer."""
    if {"topic_id", "references", "answer"} <= fields.keys():
        return "ragnarok"
    if "turn_id" in fields or not fields.keys() & {"responses", "answer"}:
        return ""
    try:
        metadata = decode(fields.get("metadata", msgspec.Raw(b"{}")), dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return ""
    return "autojudge" if metadata.keys() & {"topic_id", "narrative_id", "request_id"} else ""


def _read_answers(form: str, layout: RunLayout, data: Data, oddities: Oddities) -> Iterator[RunTurn]:
    """Raises `InvalidInputError` with the place of what is no answer, or of a citation of nothing."""
    try:
        _, entries = layout.split_entries(data, oddities)
        for entry in entries:
            if form == "ragnarok":
                line: RagnarokLine = decode_leniently(entry.data, RagnarokLine, entry.where, oddities)
                info, place = RunInfo(line.run_id), f"{entry.where}.answer"
                yield _make_turn(line.topic_id, line.answer, line.references, info, place)
            else:
                yield _read_judged(decode_leniently(entry.data, AutojudgeLine, entry.where, oddities), entry.where)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no valid {form} file ({error})") from error


def _read_judged(line: AutojudgeLine, where: str) -> RunTurn:
    metadata = line.metadata
    turn_id = metadata.topic_id or metadata.narrative_id or metadata.request_id
    if not turn_id:
        raise InvalidInputError("names no topic", where=f"{where}.metadata")
    mode: Mode = next((mode for mode in get_args(Mode) if mode == metadata.type), "automatic")
    info = RunInfo(metadata.run_id, mode, metadata.team_id)
    return _make_turn(turn_id, line.responses or line.answer or [], line.references or [], info, f"{where}.responses")


def _make_turn(
    turn_id: str,
    sentences: Sequence[CitedSentence],
    references: list[str],
    info: RunInfo,
    where: str,
) -> RunTurn:
    """The answer as a turn of a run. References have an order and no scores: those are 1, 1/2, 1/3, ..."""
    read = (_read_citations(said.citations, references, f"{where}[{n}]") for n, said in enumerate(sentences))
    cited = dict.fromkeys(id for ids in read for id in ids)
    scores = {id: 1.0 / rank for rank, id in enumerate(dict.fromkeys((*references, *cited)), start=1)}
    text = " ".join(sentence.text for sentence in sentences)
    passages, used = (RunPassage(*each) for each in scores.items()), (Hit(id, scores[id]) for id in cited)
    return RunTurn(turn_id, (RunResponse(1, text, tuple(passages), tuple(used), where=where),), where=where, info=info)


def _read_citations(citations: Any, references: list[str], where: str) -> Sequence[str]:
    """The ids that a sentence cites, best first. Raises `InvalidInputError` for a place that `references` lacks."""
    match citations:
        case None:
            return ()
        case dict() if all(isinstance(score, int | float) for score in citations.values()):
            return sorted(citations, key=citations.__getitem__, reverse=True)
        case list():
            return [_read_citation(citation, references, where) for citation in citations]
    raise InvalidInputError(f"are no citations: {str(citations)[:80]}", where=where)


def _read_citation(citation: Any, references: list[str], where: str) -> str:
    if isinstance(citation, str):
        return citation
    if isinstance(citation, int) and 0 <= citation < len(references):
        return references[citation]
    raise InvalidInputError(f"cites {citation!r}, which is no place in `references`", where=where)
