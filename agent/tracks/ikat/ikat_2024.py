"""TREC iKAT 2024: topics and runs.

Differs from 2023 in: topic numbers are integers (`0` to `16`, so a turn is `0_1`), or `1-1` as the guidelines print
them (then a turn is `1-1_1`); a turn may bring the ranking of an only-response run (`sample_passage_ranking`);
statements of a run are bare integer ids; passages of a run carry no text; `eval_response` says whether the responses
are to be judged (a retrieval-only run says no, and may leave the texts empty); a third run type, `only_response`; up to
1,000 responses a turn. Sources: the guidelines, and `2024/scripts/run_validation` of the organisers' repository.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal

import msgspec
from msgspec import Meta, Struct

from agent.tracks.edition import Edition
from agent.tracks.ikat import ikat_2023
from agent.tracks.ikat.ikat_2023 import PROTOCOL_BUFFERS, Id, Ikat2023, NonEmpty, RunEntry, T
from agent.tracks.lenient_reading import absent
from agent.tracks.rules import MAX_RESPONSES, EditionRules, check_statements_known
from agent.tracks.run_records import RunStatement
from schemas.records import Mode, Parts, RunInfo

RunType = Literal["automatic", "manual", "only_response"]
FIRST_STATEMENT = re.compile(rb'"ptkb_provenance"\s*:\s*\[\s*([^\s\]])')  # its first byte
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


class Run(Struct, Generic[T], forbid_unknown_fields=True):
    """A run file: one JSON object."""

    run_name: Id
    run_type: RunType
    eval_response: Annotated[bool, absent(True, "the responses count as to be judged")]
    turns: list[T]


class Ikat2024(Ikat2023):
    name = "ikat-2024"
    topics_shape = list[Topic]
    run_shape: Any = Run[RunEntry[int]]
    entry_shape = RunEntry[int]
    head_shape = Run[msgspec.Raw]
    rules = EditionRules(
        responses=MAX_RESPONSES, refused_oddities=PROTOCOL_BUFFERS, refused=frozenset({check_statements_known})
    )
    optional_parts = frozenset({"rewrite", "answer"})
    statement_threshold = Edition.statement_threshold
    has_texts = False

    def detects_topic(self, topic: Mapping[str, Any]) -> bool:
        """Its numbers are integers, or it brings rankings."""
        turns = topic.get("turns")
        given = isinstance(turns, list) and any(isinstance(t, dict) and "sample_passage_ranking" in t for t in turns)
        return "turns" in topic and (given or str(topic.get("number", "")).isdigit())

    def detects_run(self, fields: Mapping[str, Any]) -> bool:
        """It says `eval_response`, or where it does not, its run type is 2024's, or its first statement a bare id."""
        if "turns" not in fields or "eval_response" in fields:
            return "turns" in fields
        statement = FIRST_STATEMENT.search(bytes(fields["turns"]))
        return b"only_response" in bytes(fields.get("run_type", b"")) or bool(statement and statement[1] != b"{")

    def make_head(self, info: RunInfo) -> dict[str, Any]:
        run_type = info.type.replace("-", "_")
        return {"run_name": info.name, "run_type": run_type, "eval_response": info.parts.answer}

    def read_head(self, head: Any) -> RunInfo:
        return RunInfo(head.run_name, MODES[head.run_type], parts=Parts(answer=head.eval_response))

    def make_statement(self, statement: RunStatement) -> int:
        return int(statement.id or 0)

    def read_statement(self, given: int) -> RunStatement:
        return RunStatement(str(given))


EDITION: Edition = Ikat2024()
