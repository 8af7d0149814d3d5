"""TREC iKAT 2023: topics and runs.

A topic:

    {"number": "9-1", "title": "...", "ptkb": {"1": "I'm vegetarian.", "2": "..."},
     "turns": [{"turn_id": 1, "utterance": "...", "response": "...", "resolved_utterance": "...",
                "ptkb_provenance": [1], "response_provenance": ["clueweb22-en0035-25-01897:1"]}]}

A run is one JSON object. Statements and passages carry scores; `used` marks the passages the text is drawn from.
Source: `2023/scripts/run_validation` of the organisers' repository (`run.proto`, `main.py`), whose 32-bit scores are
why ours fall in visible steps.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta, Struct

from agent.tracks import topic_turns
from agent.tracks.run_view import RunResponse, RunTurn, RunView
from schemas.records import Answered, Hit, RunInfo, Topics

EDITION = "ikat-2023"
ENDING = ".json"
TopicNumber = Annotated[str, Meta(pattern=r"^\d+-\d+$", description="Topic and persona, such as 9-1.")]
RunType = Literal["automatic", "manual"]
NonEmpty = Annotated[str, Meta(pattern=r"\S", description="Not empty, and not only white space.")]


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


TopicsFile = list[Topic]


class Passage(Struct, forbid_unknown_fields=True):
    """A passage of the ranking; `text` is given for those that were shown to the answer step."""

    id: NonEmpty
    score: float
    used: bool
    text: str = ""


class Statement(Struct, forbid_unknown_fields=True):
    """A PTKB statement, its text exactly as in the topics."""

    id: NonEmpty
    text: NonEmpty
    score: float


class Response(Struct, forbid_unknown_fields=True):
    """One response; several are ranked from 1."""

    rank: Annotated[int, Meta(ge=1)]
    text: str
    ptkb_provenance: list[Statement]
    passage_provenance: Annotated[list[Passage], Meta(max_length=1000)]


class RunTurnEntry(Struct, forbid_unknown_fields=True):
    """The responses to one turn."""

    turn_id: NonEmpty
    responses: Annotated[list[Response], Meta(min_length=1)]


class Run(Struct, forbid_unknown_fields=True):
    """A run file."""

    run_name: NonEmpty
    run_type: RunType
    turns: list[RunTurnEntry]


def read_topics(raw: Sequence[Topic]) -> Topics:
    return topic_turns.read(EDITION, raw)


def make_run(answered: Iterable[Answered], info: RunInfo) -> bytes:
    """The run file of some answered turns."""
    turns = [RunTurnEntry(turn.turn_id, [_response(turn)]) for turn in answered]
    return msgspec.json.encode(Run(info.name, cast("RunType", info.type), turns))


def _response(turn: Answered) -> Response:
    texts = {passage.id: passage.text for passage in turn.passages}
    used = set(turn.response.used)
    statements = [Statement(chosen.statement.id, chosen.statement.text, chosen.score) for chosen in turn.personal]
    passages = [Passage(hit.id, hit.score, hit.id in used, texts.get(hit.id, "")) for hit in turn.hits]
    return Response(1, turn.response.text, statements, passages)


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
                statements=tuple((s.id, s.text) for s in response.ptkb_provenance),
                statement_scores=tuple(s.score for s in response.ptkb_provenance),
            )
            for r, response in enumerate(entry.responses)
        ]
        turns.append(RunTurn(f"$.turns[{t}]", entry.turn_id, tuple(responses)))
    return RunView(EDITION, tuple(turns))
