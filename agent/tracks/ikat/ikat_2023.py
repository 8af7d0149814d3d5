"""TREC iKAT 2023: topics and runs.

Statements and passages of a run carry scores; `used` marks the passages that the text is drawn from. There is no run
type for responses from a given ranking: such a run is `automatic`, or `manual` where the ranking is the topics' own.
Source: `2023/scripts/run_validation` of the organisers' repository (`run.proto`, `main.py`), whose 32-bit scores are
why ours fall in visible steps.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from agent.tracks.edition import Edition
from agent.tracks.ikat.ikat_topics import IkatEdition
from agent.tracks.lenient_reading import IS_ID, PLACE_DOWN, PLACE_UP, absent
from agent.tracks.rules import EditionLimits, OfficialValidator
from agent.tracks.run_layouts import JsonObject
from agent.tracks.run_records import RunPassage, RunResponse, RunStatement, RunTurn
from schemas.records import Hit, RunInfo

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


class Passage(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A passage of the ranking; in 2023 `text` is given for those that were shown to the answer step."""

    id: Id
    score: Annotated[float, PLACE_DOWN]
    used: Annotated[bool, absent(False, "the passage counts as not used")]
    text: str = ""


class Statement(Struct, forbid_unknown_fields=True):
    """A PTKB statement, its text exactly as in the topics."""

    id: Id
    text: NonEmpty
    score: Annotated[float, PLACE_DOWN]


S = TypeVar("S")  # a statement as an edition writes it
T = TypeVar("T")  # a turn of a run, decoded or not


class Response(Struct, Generic[S], forbid_unknown_fields=True):
    """One response; several are ranked from 1. Statements stand most relevant first."""

    rank: Annotated[int, Meta(ge=1), PLACE_UP]
    text: Annotated[str, absent("", "the text is empty")]
    ptkb_provenance: Annotated[list[S], absent([], "no statement was chosen")]
    passage_provenance: Annotated[list[Passage], Meta(max_length=1000), absent([], "there are no passages")]


class RunEntry(Struct, Generic[S], forbid_unknown_fields=True):
    """The responses to one turn."""

    turn_id: Id
    responses: Annotated[list[Response[S]], Meta(min_length=1)]


class Run(Struct, Generic[T], forbid_unknown_fields=True):
    """A run file: one JSON object."""

    run_name: Id
    run_type: RunType
    turns: list[T]


def make_head(info: RunInfo) -> dict[str, Any]:
    """What stands before the turns of a run."""
    given = "manual" if info.labels else "automatic"
    return {"run_name": info.name, "run_type": given if info.type == "only-response" else info.type}


def read_head(head: Run[msgspec.Raw]) -> RunInfo:
    """What the head of a run says of it."""
    return RunInfo(head.run_name, head.run_type, labels=head.run_type == "manual")


class Ikat2023(IkatEdition):
    """iKAT 2023."""

    name = "ikat-2023"
    topics_shape = list[Topic]
    run_shape: Any = Run[RunEntry[Statement]]
    entry_shape: Any = RunEntry[Statement]
    layout = JsonObject(Run[msgspec.Raw], make_head, read_head)
    limits = EditionLimits()
    official = PROTOCOL_BUFFERS
    optional_parts = frozenset({"rewrite"})
    statement_threshold = 0.0  # its assessors judged turns for which some statement matters: one is always chosen
    has_texts = True  # whether its runs give the texts of passages

    def detects_topic(self, topic: Mapping[str, Any]) -> bool:
        return "turns" in topic and "number" in topic

    def detects_run(self, fields: Mapping[str, Any]) -> bool:
        return "turns" in fields

    def make_statement(self, statement: RunStatement) -> Any:
        """A statement as a run says it."""
        return Statement(statement.id or "", statement.text or "", statement.score or 0.0)

    def read_statement(self, given: Any) -> RunStatement:
        """A statement that a run names."""
        return RunStatement(given.id, given.text, given.score)

    def make_entry(self, turn: RunTurn, _info: RunInfo) -> RunEntry[Any]:
        return RunEntry(turn.turn_id, [self._make_response(response) for response in turn.responses])

    def _make_response(self, response: RunResponse) -> Response[Any]:
        used = {hit.id for hit in response.used}
        return Response(
            response.rank,
            response.text or "",
            [self.make_statement(statement) for statement in response.statements],
            [Passage(p.id, p.score, p.id in used, p.text if self.has_texts else "") for p in response.passages or ()],
        )

    def read_entry(self, entry: RunEntry[Any], where: str, info: RunInfo) -> RunTurn:
        """An empty text of a retrieval-only run is none."""
        responses = (
            RunResponse(
                given.rank,
                given.text if given.text or info.parts.answer else None,
                tuple(RunPassage(passage.id, passage.score, passage.text) for passage in given.passage_provenance),
                tuple(Hit(passage.id, passage.score) for passage in given.passage_provenance if passage.used),
                tuple(map(self.read_statement, given.ptkb_provenance)),
                f"{where}.responses[{n}]",
            )
            for n, given in enumerate(entry.responses)
        )
        return RunTurn(entry.turn_id, tuple(responses), where=where)


EDITION: Edition = Ikat2023()
