"""TREC iKAT 2024: topics and runs.

Differs from 2023 in: topic numbers are integers (`0` to `16`, so a turn is `0_1`); statements of a run are bare integer
ids; passages of a run carry no text; `eval_response` says whether the responses are to be judged; a third run type,
`only_response`. Source: `2024/scripts/run_validation` of the organisers' repository.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta, Struct

from agent.tracks import topic_turns
from agent.tracks.ikat_2023 import NonEmpty, TopicTurn
from agent.tracks.run_view import RunResponse, RunTurn, RunView
from schemas.records import Answered, Hit, RunInfo, Topics

EDITION = "ikat-2024"
ENDING = ".json"
RunType = Literal["automatic", "manual", "only_response"]


class Topic(Struct, forbid_unknown_fields=True):
    """One conversation with one person."""

    number: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^\d+$")]
    ptkb: dict[Annotated[str, Meta(pattern=r"^\d+$")], NonEmpty]
    turns: Annotated[list[TopicTurn], Meta(min_length=1)]
    title: str = ""


TopicsFile = list[Topic]


class Passage(Struct, forbid_unknown_fields=True):
    """A passage of the ranking, and whether the text is drawn from it."""

    id: NonEmpty
    score: float
    used: bool


class Response(Struct, forbid_unknown_fields=True):
    """One response; several are ranked from 1. `ptkb_provenance` holds statement ids, most relevant first."""

    rank: Annotated[int, Meta(ge=1)]
    text: str
    ptkb_provenance: list[int]
    passage_provenance: Annotated[list[Passage], Meta(max_length=1000)]


class RunTurnEntry(Struct, forbid_unknown_fields=True):
    """The responses to one turn."""

    turn_id: Annotated[str, Meta(pattern=r"^\d+_\d+$")]
    responses: Annotated[list[Response], Meta(min_length=1)]


class Run(Struct, forbid_unknown_fields=True):
    """A run file."""

    run_name: NonEmpty
    run_type: RunType
    eval_response: bool
    turns: list[RunTurnEntry]


def read_topics(raw: Sequence[Topic]) -> Topics:
    return topic_turns.read(EDITION, raw)


def make_run(answered: Iterable[Answered], info: RunInfo) -> bytes:
    """The run file of some answered turns."""
    turns = [RunTurnEntry(turn.turn_id, [_response(turn)]) for turn in answered]
    return msgspec.json.encode(Run(info.name, cast("RunType", info.type.replace("-", "_")), True, turns))


def _response(turn: Answered) -> Response:
    used = set(turn.response.used)
    statements = [int(chosen.statement.id) for chosen in turn.personal]
    return Response(
        1, turn.response.text, statements, [Passage(hit.id, hit.score, hit.id in used) for hit in turn.hits]
    )


def read_run(data: bytes) -> Run:
    return msgspec.json.decode(data, type=Run)


def view(run: Run) -> RunView:
    """The run as the rules of all years see it."""
    turns = []
    for t, entry in enumerate(run.turns):
        responses = [
            RunResponse(
                where=f"$.turns[{t}].responses[{r}]",
                rank=response.rank,
                text=response.text,
                passages=tuple(Hit(passage.id, passage.score) for passage in response.passage_provenance),
                used=tuple(passage.id for passage in response.passage_provenance if passage.used),
                statements=tuple((str(id), None) for id in response.ptkb_provenance),
            )
            for r, response in enumerate(entry.responses)
        ]
        turns.append(RunTurn(f"$.turns[{t}]", entry.turn_id, tuple(responses)))
    return RunView(EDITION, tuple(turns), text_needed=run.eval_response)
