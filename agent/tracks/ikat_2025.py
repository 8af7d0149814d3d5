"""TREC iKAT 2025: topics and runs.

Differs from 2024 in: the PTKB is a plain list; turns are `responses` with `user_utterance`; labels are `relevant_ptkbs`
(texts) and `citations`; a run is JSON lines, one a turn, with the ranking in `references {id: score}`, what the text is
drawn from in `citations {id: score}`, and statements as texts; the third run type is called `generation-only`. Source:
`2025/scripts/validate_trec_ikat25.py` of the organisers' repository.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct

from agent.tracks import topic_turns
from agent.tracks.ikat_2023 import NonEmpty, TopicNumber
from agent.tracks.run_view import RunResponse, RunTurn, RunView
from schemas.records import Answered, Hit, RunInfo, Topics

EDITION = "ikat-2025"
ENDING = ".jsonl"
RunType = Literal["automatic", "manual", "generation-only"]
Ranking = Annotated[dict[NonEmpty, float], Meta(description="Passage id to score; higher is better.")]


class TopicTurn(Struct, forbid_unknown_fields=True):
    """One turn. `response` and the labels may be absent."""

    turn_id: Annotated[int, Meta(ge=1)]
    utterance: NonEmpty = msgspec.field(name="user_utterance")
    resolved_utterance: str = ""
    response: str | None = None
    ptkb_provenance: list[int | str] = msgspec.field(name="relevant_ptkbs", default_factory=list)
    response_provenance: list[str] | dict[str, Any] = msgspec.field(name="citations", default_factory=list)


class Topic(Struct, forbid_unknown_fields=True):
    """One conversation with one person."""

    number: TopicNumber
    ptkb: list[NonEmpty]
    turns: Annotated[list[TopicTurn], Meta(min_length=1)] = msgspec.field(name="responses")
    title: str = ""


TopicsFile = list[Topic]


class Metadata(Struct, forbid_unknown_fields=True):
    """Who made the run and how; the same on every line."""

    team_id: NonEmpty
    run_id: NonEmpty
    run_type: RunType


class Response(Struct, forbid_unknown_fields=True):
    """One response; `citations` are among the line's `references`."""

    text: str
    citations: Ranking
    ptkb_provenance: list[NonEmpty]


class RunLine(Struct, forbid_unknown_fields=True):
    """One line of a run: one turn."""

    metadata: Metadata
    turn_id: NonEmpty
    references: Annotated[dict[NonEmpty, float], Meta(max_length=1000)]
    responses: Annotated[list[Response], Meta(min_length=1)]


Run = list[RunLine]


def read_topics(raw: Sequence[Topic]) -> Topics:
    return topic_turns.read(EDITION, raw)


def make_run(answered: Iterable[Answered], info: RunInfo) -> bytes:
    """The run file of some answered turns."""
    run_type = cast("RunType", info.type.replace("only-response", "generation-only"))
    metadata = Metadata(info.team, info.name, run_type)
    return b"".join(msgspec.json.encode(_line(turn, metadata)) + b"\n" for turn in answered)


def _line(turn: Answered, metadata: Metadata) -> RunLine:
    references = {hit.id: hit.score for hit in turn.hits}
    citations = {id: references[id] for id in sorted(turn.response.used, key=lambda id: -references[id])}
    statements = [chosen.statement.text for chosen in turn.personal]
    return RunLine(metadata, turn.turn_id, references, [Response(turn.response.text, citations, statements)])


def read_run(data: bytes) -> Run:
    return msgspec.json.Decoder(RunLine).decode_lines(data)


def view(run: Run) -> RunView:
    """The run as the rules of all years see it."""
    turns = []
    for n, line in enumerate(run, start=1):
        passages = tuple(Hit(id, score) for id, score in line.references.items())
        responses = [
            RunResponse(
                where=f"line {n} $.responses[{r}]",
                rank=r + 1,
                text=response.text,
                passages=passages,
                used=tuple(response.citations),
                statements=tuple((None, text) for text in response.ptkb_provenance),
            )
            for r, response in enumerate(line.responses)
        ]
        turns.append(RunTurn(f"line {n}", line.turn_id, tuple(responses)))
    return RunView(EDITION, tuple(turns))
