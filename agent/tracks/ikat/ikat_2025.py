"""TREC iKAT 2025: topics and runs.

Differs from 2024 in: the PTKB is a plain list; turns are `responses` with `user_utterance`; labels are `relevant_ptkbs`
(texts) and `citations`; a run is JSON lines, one a turn, with the ranking in `references {id: score}`, what the text is
drawn from in `citations {id: score}`, and statements as texts; the third run type is called `generation-only`. Source:
`2025/scripts/validate_trec_ikat25.py` of the organisers' repository.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from agent.tracks.edition import Edition
from agent.tracks.ikat.ikat_2023 import Id, IkatEdition, NonEmpty, TopicNumber
from agent.tracks.lenient_reading import absent
from agent.tracks.rules import EditionRules, check_citations_listed
from agent.tracks.run_records import RunPassage, RunResponse, RunStatement, RunTurn
from schemas.records import Hit, Mode, RunInfo

RunType = Literal["automatic", "manual", "generation-only"]
MODES: dict[RunType, Mode] = {"automatic": "automatic", "manual": "manual", "generation-only": "only-response"}
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


class Metadata(Struct, forbid_unknown_fields=True):
    """Who made the run and how; the same on every line."""

    team_id: Id
    run_id: Id
    run_type: RunType


class Response(Struct, forbid_unknown_fields=True):
    """One response; `citations` are among the line's `references`."""

    text: str
    citations: Annotated[Ranking, absent({}, "nothing is cited")]
    ptkb_provenance: Annotated[list[NonEmpty], absent([], "no statement was chosen")]


class RunEntry(Struct, forbid_unknown_fields=True):
    """One line of a run: one turn."""

    metadata: Metadata
    turn_id: Id
    references: Annotated[dict[NonEmpty, float], Meta(max_length=1000)]
    responses: list[Response]


class Ikat2025(IkatEdition):
    name = "ikat-2025"
    topics_shape = list[Topic]
    run_shape: Any = RunEntry
    entry_shape = RunEntry
    on_lines = True
    rules = EditionRules(
        together=True,
        refused_oddities=frozenset({"absent field", "no JSON"}),
        refused=frozenset({check_citations_listed}),
        refuses_repeated_turns=False,
    )
    topic_fields, run_fields = frozenset({"responses"}), frozenset({"references"})
    optional_parts = frozenset({"rewrite"})

    def make_entry(self, turn: RunTurn, info: RunInfo) -> RunEntry:
        """All responses share the first one's ranking."""
        run_type = next(name for name, mode in MODES.items() if mode == info.type)
        references = {passage.id: passage.score for passage in turn.responses[0].passages or ()}
        responses = [
            Response(
                given.text or "", {hit.id: hit.score for hit in given.used}, [s.text or "" for s in given.statements]
            )
            for given in turn.responses
        ]
        return RunEntry(Metadata(info.team, info.name, run_type), turn.turn_id, references, responses)

    def read_entry(self, entry: RunEntry, where: str, _info: RunInfo) -> RunTurn:
        ranking = tuple(RunPassage(id, score) for id, score in entry.references.items())
        responses = [
            RunResponse(
                n + 1,
                given.text,
                ranking,
                tuple(Hit(id, score) for id, score in given.citations.items()),
                tuple(RunStatement(text=text) for text in given.ptkb_provenance),
                f"{where}.responses[{n}]",
            )
            for n, given in enumerate(entry.responses)
        ] or [RunResponse(1, "", ranking, where=f"{where}.responses")]  # the ranking counts without a response, too
        metadata = entry.metadata
        info = RunInfo(metadata.run_id, MODES[metadata.run_type], metadata.team_id)
        return RunTurn(entry.turn_id, tuple(responses), where=where, info=info)


EDITION: Edition = Ikat2025()
