"""TREC iKAT 2024: topics and runs.

Differs from 2023 in: topic numbers are integers (`0` to `16`, so a turn is `0_1`), or `1-1` as the guidelines print
them (then a turn is `1-1_1`); a turn may bring the ranking of an only-response run (`sample_passage_ranking`);
statements of a run are bare integer ids; passages of a run carry no text; `eval_response` says whether the responses
are to be judged (a retrieval-only run says no, and may leave the texts empty); a third run type, `only_response`; up to
1,000 responses a turn. Sources: the guidelines, and `2024/scripts/run_validation` of the organisers' repository.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from agent.tracks.edition import Document, Edition
from agent.tracks.ikat import ikat_2023
from agent.tracks.ikat.ikat_2023 import PROTOCOL_BUFFERS, Id, NonEmpty
from agent.tracks.ikat.ikat_topics import IkatEdition
from agent.tracks.lenient_reading import IS_ID, PLACE_DOWN, PLACE_UP, absent
from agent.tracks.rules import MAX_RESPONSES, EditionLimits, OfficialValidator, check_statements_known
from agent.tracks.run_layouts import JsonObject
from agent.tracks.run_records import RunPassage, RunResponse, RunStatement, RunTurn
from schemas.records import Hit, Mode, Parts, RunInfo
from schemas.wire import decode

TOPICS_EXAMPLE: Any = [{**ikat_2023.TOPICS_EXAMPLE[0], "number": 0}]
RUN_EXAMPLE: Any = {
    "run_name": "our-run",
    "run_type": "automatic",
    "eval_response": True,
    "turns": [
        {
            "turn_id": "0_1",
            "responses": [
                {
                    "rank": 1,
                    "text": "A Mediterranean diet can be vegetarian.",
                    "ptkb_provenance": [1],
                    "passage_provenance": [{"id": "clueweb22-en0035-25-01897:1", "score": 9.5, "used": True}],
                }
            ],
        }
    ],
}
RunType = Literal["automatic", "manual", "only_response"]
MODES: dict[RunType, Mode] = {"automatic": "automatic", "manual": "manual", "only_response": "only-response"}


class TopicTurn(ikat_2023.TopicTurn):
    """One turn, with the ranking that an only-response run answers from where the topics give one."""

    sample_passage_ranking: list[NonEmpty] = msgspec.field(default_factory=list)


class Topic(Struct, forbid_unknown_fields=True):
    """One conversation with one person."""

    number: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^\d+(-\d+)?$")]
    ptkb: dict[Annotated[str, Meta(pattern=r"^\d+$")], NonEmpty]
    turns: Annotated[list[TopicTurn], Meta(min_length=1)]
    title: str = ""


class Passage(Struct, forbid_unknown_fields=True):
    """A passage of the ranking, and whether the text is drawn from it."""

    also_read: ClassVar = frozenset({"text"})  # fields that the official validator knows, and we do not write

    id: Id
    score: Annotated[float, PLACE_DOWN]
    used: Annotated[bool, absent(False, "the passage counts as not used")]


class Response(Struct, forbid_unknown_fields=True):
    """One response; several are ranked from 1. `ptkb_provenance` holds statement ids, most relevant first."""

    rank: Annotated[int, Meta(ge=1), PLACE_UP]
    text: Annotated[str, absent("", "the text is empty")]
    ptkb_provenance: Annotated[list[int], absent([], "no statement was chosen")]
    passage_provenance: Annotated[list[Passage], Meta(max_length=1000), absent([], "there are no passages")]


class RunEntry(Struct, forbid_unknown_fields=True):
    """The responses to one turn."""

    turn_id: Annotated[str, Meta(pattern=r"^\d+(-\d+)?_\d+$", extra=IS_ID)]
    responses: Annotated[list[Response], Meta(min_length=1)]


class Head(Struct, forbid_unknown_fields=True):
    """What stands before the turns."""

    run_name: Id
    run_type: RunType
    eval_response: Annotated[bool, absent(True, "the responses count as to be judged")]


class Run(Head):
    """A run file: one JSON object."""

    turns: list[RunEntry]


class RunHead(Head):
    """A run file whose turns are decoded one by one."""

    turns: list[msgspec.Raw]


def make_head(info: RunInfo) -> dict[str, Any]:
    """What stands before the turns of a run."""
    run_type = info.type.replace("-", "_")
    return {"run_name": info.name, "run_type": run_type, "eval_response": info.parts.answer}


def read_head(head: RunHead) -> RunInfo:
    """What the head of a run says of it."""
    return RunInfo(head.run_name, MODES[head.run_type], parts=Parts(answer=head.eval_response))


class Ikat2024(IkatEdition):
    """iKAT 2024."""

    name = "ikat-2024"
    title = "TREC iKAT 2024"
    topics = Document(list[Topic], TOPICS_EXAMPLE)
    run = Document(Run, RUN_EXAMPLE)
    entry_shape = RunEntry
    layout = JsonObject(RunHead, make_head, read_head)
    limits = EditionLimits(responses=MAX_RESPONSES)
    official = OfficialValidator(PROTOCOL_BUFFERS.oddities, frozenset({check_statements_known}))
    optional_parts = frozenset({"rewrite", "answer"})

    def detects_topic(self, topic: Mapping[str, Any]) -> bool:
        """Its numbers are integers, or it brings rankings."""
        turns = topic.get("turns")
        given = isinstance(turns, list) and any(isinstance(t, dict) and "sample_passage_ranking" in t for t in turns)
        return "turns" in topic and (given or str(topic.get("number", "")).isdigit())

    def detects_run(self, fields: Mapping[str, Any]) -> bool:
        """It says `eval_response`, or where it does not, its run type is 2024's, or its statements are bare ids."""
        if "turns" not in fields or "eval_response" in fields:
            return "turns" in fields
        statement: Any = next(_iterate_statements(fields["turns"]), {})
        return "run_type" in fields and (_decode_any(fields["run_type"]) == "only_response" or statement != {})

    def make_entry(self, turn: RunTurn, _info: RunInfo) -> RunEntry:
        return RunEntry(turn.turn_id, [_make_response(response) for response in turn.responses])

    def read_entry(self, entry: RunEntry, where: str, info: RunInfo) -> RunTurn:
        """An empty text of a retrieval-only run is none."""
        responses = [
            _read_response(given, f"{where}.responses[{n}]", judged=info.parts.answer)
            for n, given in enumerate(entry.responses)
        ]
        return RunTurn(entry.turn_id, tuple(responses), where=where)


def _iterate_statements(turns: msgspec.Raw) -> Iterator[Any]:
    """The statements of the turns of a run, from the first on: an id each in 2024, `{}` for the objects of 2023."""
    try:
        raws = decode(turns, list[msgspec.Raw])
    except msgspec.DecodeError:
        return
    for raw in raws:
        turn = _decode_any(raw)
        responses = turn.get("responses") if isinstance(turn, dict) else None
        for response in responses if isinstance(responses, list) else ():
            found = response.get("ptkb_provenance") if isinstance(response, dict) else None
            for statement in found if isinstance(found, list) else ():
                yield {} if isinstance(statement, dict) else statement


def _decode_any(raw: msgspec.Raw) -> Any:
    try:
        return decode(raw)
    except msgspec.DecodeError:
        return None


def _make_response(response: RunResponse) -> Response:
    used = {hit.id for hit in response.used}
    statements = [int(statement.id or 0) for statement in response.statements]
    passages = [Passage(passage.id, passage.score, passage.id in used) for passage in response.passages or ()]
    return Response(response.rank, response.text or "", statements, passages)


def _read_response(response: Response, where: str, *, judged: bool) -> RunResponse:
    return RunResponse(
        response.rank,
        response.text if response.text or judged else None,
        tuple(RunPassage(passage.id, passage.score) for passage in response.passage_provenance),
        tuple(Hit(passage.id, passage.score) for passage in response.passage_provenance if passage.used),
        tuple(RunStatement(str(id)) for id in response.ptkb_provenance),
        where,
    )


EDITION: Edition = Ikat2024()
