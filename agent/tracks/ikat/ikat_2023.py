"""TREC iKAT 2023: topics and runs.

Statements and passages of a run carry scores; `used` marks the passages that the text is drawn from. There is no run
type for responses from a given ranking: such a run is `automatic`, or `manual` where the ranking is the topics' own.
Source: `2023/scripts/run_validation` of the organisers' repository (`run.proto`, `main.py`), whose 32-bit scores are
why ours fall in visible steps.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from agent.tracks.edition import Document, Edition
from agent.tracks.ikat.ikat_topics import IkatEdition
from agent.tracks.lenient_reading import IS_ID, PLACE_DOWN, PLACE_UP, absent
from agent.tracks.rules import EditionLimits, OfficialValidator
from agent.tracks.run_layouts import JsonObject
from agent.tracks.run_records import RunPassage, RunResponse, RunStatement, RunTurn
from schemas.records import Hit, RunInfo

TOPICS_EXAMPLE: Any = [
    {
        "number": "9-1",
        "title": "Finding a diet",
        "ptkb": {"1": "I'm vegetarian.", "2": "I play the trumpet."},
        "turns": [
            {
                "turn_id": 1,
                "utterance": "Can you help me find a diet?",
                "response": "A vegetarian Mediterranean diet suits you.",
                "resolved_utterance": "Can you help me find a vegetarian diet?",
                "ptkb_provenance": [1],
                "response_provenance": ["clueweb22-en0035-25-01897:1"],
            }
        ],
    }
]
RUN_EXAMPLE: Any = {
    "run_name": "our-run",
    "run_type": "automatic",
    "turns": [
        {
            "turn_id": "9-1_1",
            "responses": [
                {
                    "rank": 1,
                    "text": "A Mediterranean diet can be vegetarian.",
                    "ptkb_provenance": [{"id": "1", "text": "I'm vegetarian.", "score": 0.5}],
                    "passage_provenance": [
                        {"id": "clueweb22-en0035-25-01897:1", "score": 9.5, "used": True, "text": "A Mediterranean ..."}
                    ],
                }
            ],
        }
    ],
}
TopicNumber = Annotated[str, Meta(pattern=r"^\d+-\d+$", description="Topic and persona, such as 9-1.", extra=IS_ID)]
RunType = Literal["automatic", "manual"]
NonEmpty = Annotated[str, Meta(pattern=r"\S", description="Not empty, and not only white space.")]
Id = Annotated[NonEmpty, Meta(extra=IS_ID)]
# Protocol Buffers read the runs of 2023 and 2024: they take numbers as text and do without fields, and refuse the rest.
PROTOCOL_BUFFERS = OfficialValidator(frozenset({"unknown field", "id as number", "no JSON"}))


class TopicTurn(Struct, forbid_unknown_fields=True):
    """One turn. `response` and the labels may be absent."""

    turn_id: Annotated[int, Meta(ge=1)]
    utterance: NonEmpty
    resolved_utterance: str = ""
    response: str | None = None
    ptkb_provenance: list[int | str] = []
    response_provenance: list[str] = []


class Topic(Struct, forbid_unknown_fields=True):
    """One conversation with one person."""

    number: TopicNumber
    ptkb: dict[str, NonEmpty]
    turns: Annotated[list[TopicTurn], Meta(min_length=1)]
    title: str = ""


class Passage(Struct, forbid_unknown_fields=True):
    """A passage of the ranking; `text` is given for those that were shown to the answer step."""

    id: Id
    score: Annotated[float, PLACE_DOWN]
    used: Annotated[bool, absent(False, "the passage counts as not used")]
    text: str = ""


class Statement(Struct, forbid_unknown_fields=True):
    """A PTKB statement, its text exactly as in the topics."""

    id: Id
    text: NonEmpty
    score: Annotated[float, PLACE_DOWN]


class Response(Struct, forbid_unknown_fields=True):
    """One response; several are ranked from 1."""

    rank: Annotated[int, Meta(ge=1), PLACE_UP]
    text: Annotated[str, absent("", "the text is empty")]
    ptkb_provenance: Annotated[list[Statement], absent([], "no statement was chosen")]
    passage_provenance: Annotated[list[Passage], Meta(max_length=1000), absent([], "there are no passages")]


class RunEntry(Struct, forbid_unknown_fields=True):
    """The responses to one turn."""

    turn_id: Id
    responses: Annotated[list[Response], Meta(min_length=1)]


class Head(Struct, forbid_unknown_fields=True):
    """What stands before the turns."""

    run_name: Id
    run_type: RunType


class Run(Head):
    """A run file: one JSON object."""

    turns: list[RunEntry]


class RunHead(Head):
    """A run file whose turns are decoded one by one."""

    turns: list[msgspec.Raw]


def make_head(info: RunInfo) -> dict[str, Any]:
    """What stands before the turns of a run."""
    given = "manual" if info.labels else "automatic"
    return {"run_name": info.name, "run_type": given if info.type == "only-response" else info.type}


def read_head(head: RunHead) -> RunInfo:
    """What the head of a run says of it."""
    return RunInfo(head.run_name, head.run_type, labels=head.run_type == "manual")


class Ikat2023(IkatEdition):
    """iKAT 2023."""

    name = "ikat-2023"
    title = "TREC iKAT 2023"
    topics = Document(list[Topic], TOPICS_EXAMPLE)
    run = Document(Run, RUN_EXAMPLE)
    entry_shape = RunEntry
    layout = JsonObject(RunHead, make_head, read_head)
    limits = EditionLimits()
    official = PROTOCOL_BUFFERS
    optional_parts = frozenset({"rewrite"})
    statement_threshold = 0.0  # its assessors judged turns for which some statement matters: one is always chosen

    def detects_topic(self, topic: Mapping[str, Any]) -> bool:
        return "turns" in topic and "number" in topic

    def detects_run(self, fields: Mapping[str, Any]) -> bool:
        return "turns" in fields

    def make_entry(self, turn: RunTurn, _info: RunInfo) -> RunEntry:
        return RunEntry(turn.turn_id, [_make_response(response) for response in turn.responses])

    def read_entry(self, entry: RunEntry, where: str, _info: RunInfo) -> RunTurn:
        responses = [_read_response(given, f"{where}.responses[{n}]") for n, given in enumerate(entry.responses)]
        return RunTurn(entry.turn_id, tuple(responses), where=where)


def _make_response(response: RunResponse) -> Response:
    used = {hit.id for hit in response.used}
    statements = [Statement(s.id or "", s.text or "", s.score or 0.0) for s in response.statements]
    passages = [Passage(p.id, p.score, p.id in used, p.text) for p in response.passages or ()]
    return Response(response.rank, response.text or "", statements, passages)


def _read_response(response: Response, where: str) -> RunResponse:
    return RunResponse(
        response.rank,
        response.text,
        tuple(RunPassage(passage.id, passage.score, passage.text) for passage in response.passage_provenance),
        tuple(Hit(passage.id, passage.score) for passage in response.passage_provenance if passage.used),
        tuple(RunStatement(s.id, s.text, s.score) for s in response.ptkb_provenance),
        where,
    )


EDITION: Edition = Ikat2023()
