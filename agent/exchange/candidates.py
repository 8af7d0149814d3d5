"""Queries with candidate passages: what the Nuggetizer makes nuggets from, and Ragnarök and RankLLM read.

    {"query": {"qid": "9-1_1", "text": "How long does rice bread keep?"},
     "candidates": [{"docid": "bread:1", "score": 9.5, "doc": {"segment": "Rice bread keeps ..."}}]}

They stand on lines, in an array, or alone. The text of a passage is read from any of its usual fields, or is the `doc`
itself. Without scores the order of the candidates counts.

source: `ragnarok.data.Request` of pyragnarok 0.0.1, README of nuggetizer 0.0.5.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from agent.tracks.lenient_reading import PLACE_DOWN, decode_leniently
from agent.tracks.oddities import Oddities
from agent.tracks.run_layouts import JSON_ARRAY, JSON_LINES, Entry, decode_fields
from schemas.errors import InvalidInputError
from schemas.records import Hit, Passage, RunInfo, TurnResult
from schemas.wire import Data

REMEDY = (
    'A query names its turn and its passages: {"query": {"qid": "9-1_1"}, "candidates": [{"docid": "bread:1", '
    '"score": 9.5}]}. The shorthand of Ragnarök, `"query": "..."`, leaves out both.'
)
TEXT_FIELDS = ("segment", "contents", "text", "passage", "body", "passage_text")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The passages found for one query, as they stand in the file; some may come without a text."""

    qid: str
    text: str
    hits: tuple[Hit, ...]
    passages: tuple[Passage, ...]  # in the same order; without a text where the file has none


class _Query(msgspec.Struct):
    qid: str | int
    text: str = ""


class _Candidate(msgspec.Struct, omit_defaults=True):
    docid: str | int
    score: Annotated[float, PLACE_DOWN]
    doc: dict[str, Any] | str = ""
    text: str = ""


class _Line(msgspec.Struct):
    query: _Query
    candidates: list[_Candidate]


def find_queries(data: Data, oddities: Oddities) -> Iterator[Entry] | None:
    """Where queries with candidates stand in a file; None for any other file."""
    for layout in (JSON_LINES, JSON_ARRAY):
        if "candidates" in layout.read_first_fields(data):
            return layout.split_entries(data, oddities)[1]
    return iter([Entry("$", data)]) if "candidates" in decode_fields(data, dict[str, msgspec.Raw]) else None


def decode_candidates(queries: Iterable[Entry], oddities: Oddities) -> Iterator[Candidates]:
    """What the queries of a file say. Raises `InvalidInputError` with the place of what is none."""
    for entry in queries:
        try:
            read: _Line = decode_leniently(entry.data, _Line, entry.where, oddities)
        except msgspec.DecodeError as error:
            what = f"{entry.where.removesuffix(' $')}: is no query with the passages found for it ({error})"
            raise InvalidInputError(what, remedy=REMEDY) from error
        hits = tuple(Hit(str(candidate.docid), candidate.score) for candidate in read.candidates)
        yield Candidates(str(read.query.qid), read.query.text, hits, tuple(map(_to_passage, read.candidates)))


def _to_passage(candidate: _Candidate) -> Passage:
    doc = candidate.doc if isinstance(candidate.doc, dict) else {"text": candidate.doc or candidate.text}
    text = next((value for name in TEXT_FIELDS if isinstance(value := doc.get(name), str) and value.strip()), "")
    title, url = (value if isinstance(value := doc.get(name), str) else "" for name in ("title", "url"))
    return Passage(str(candidate.docid), text.strip(), title, url)


def encode_candidates(turn: TurnResult, _info: RunInfo) -> bytes:
    """The line of a turn: its passages whose text was read."""
    scores = {hit.id: hit.score for hit in turn.hits}
    candidates = [_Candidate(p.id, scores.get(p.id, 0.0), _to_doc(p)) for p in turn.passages]
    return msgspec.json.encode(_Line(_Query(turn.turn_id, turn.query.standalone), candidates)) + b"\n"


def _to_doc(passage: Passage) -> dict[str, Any]:
    more = {"title": passage.title, "url": passage.url}
    return {"segment": passage.text} | {name: value for name, value in more.items() if value}
