"""TREC iKAT 2023: topics and runs.

Statements and passages of a run carry scores; `used` marks the passages that the text is drawn from. There is no run
type for responses from a given ranking: such a run is `automatic`, or `manual` where the ranking is the topics' own.
Source: `2023/scripts/run_validation` of the organisers' repository (`run.proto`, `main.py`), whose 32-bit scores are
why ours fall in visible steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta, Struct

from agent.tracks.edition import Edition, Entry
from agent.tracks.lenient_reading import (
    IS_ID,
    PLACE_DOWN,
    PLACE_UP,
    Oddities,
    OddityKind,
    absent,
    check_unique,
    decode_spelling,
    fit_to_shape,
)
from agent.tracks.rules import EditionRules
from agent.tracks.run_records import RunPassage, RunResponse, RunStatement, RunTurn
from schemas import records
from schemas.records import Hit, Message, RunInfo, Topics, Turn, TurnLabels
from schemas.wire import Data, decode

TopicNumber = Annotated[str, Meta(pattern=r"^\d+-\d+$", description="Topic and persona, such as 9-1.", extra=IS_ID)]
RunType = Literal["automatic", "manual"]
NonEmpty = Annotated[str, Meta(pattern=r"\S", description="Not empty, and not only white space.")]
Id = Annotated[NonEmpty, Meta(extra=IS_ID)]
# Protocol Buffers read the runs of 2023 and 2024: they take numbers as text and do without fields, and refuse the rest.
PROTOCOL_BUFFERS: frozenset[OddityKind] = frozenset({"unknown field", "id as number", "no JSON"})


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


class IkatEdition(Edition, Protocol):
    """What all iKAT editions have in common: how their topics are read, whose wire types have the names of 2023."""

    def read_topics(self, raw: Sequence[Any]) -> Topics:
        """Topics and labels. Raises `InvalidInputError` listing topics or turns that are there twice."""
        numbers = [("topic", str(topic.number)) for topic in raw]
        check_unique(numbers + [("turn", _turn_id(topic, turn)) for topic in raw for turn in topic.turns])
        topics = tuple(
            records.Topic(str(topic.number), _read_statements(topic), tuple(_read_turns(topic))) for topic in raw
        )
        labels = {_turn_id(topic, turn): _read_labels(topic, turn) for topic in raw for turn in topic.turns}
        given = {_turn_id(topic, t): getattr(t, "sample_passage_ranking", ()) for topic in raw for t in topic.turns}
        rankings = {id: tuple(ranking) for id, ranking in given.items() if ranking}
        return Topics(self.name, topics, labels, rankings)


def _turn_id(topic: Any, turn: Any) -> str:
    return f"{topic.number}_{turn.turn_id}"


def _read_statements(topic: Any) -> tuple[records.Statement, ...]:
    given = topic.ptkb if isinstance(topic.ptkb, Mapping) else {str(n): t for n, t in enumerate(topic.ptkb, start=1)}
    return tuple(records.Statement(id, text) for id, text in given.items())


def _read_turns(topic: Any) -> Iterator[Turn]:
    """Each turn with the canonical conversation before it, as long as every earlier reply is given."""
    history: tuple[Message, ...] | None = ()
    for turn in topic.turns:
        yield Turn(_turn_id(topic, turn), turn.utterance, history)
        if history is None or not (turn.response or "").strip():
            history = None
        else:
            history = (*history, Message("user", turn.utterance), Message("assistant", str(turn.response)))


def _read_labels(topic: Any, turn: Any) -> TurnLabels:
    ids = {statement.text: statement.id for statement in _read_statements(topic)}
    return TurnLabels(
        human_rewrite=turn.resolved_utterance,
        reply=turn.response or "",
        statement_ids=tuple(ids.get(str(given), str(given)) for given in turn.ptkb_provenance),
        passage_ids=tuple(turn.response_provenance),
    )


class Ikat2023(IkatEdition):
    name = "ikat-2023"
    topics_shape = list[Topic]
    run_shape: Any = Run[RunEntry[Statement]]
    entry_shape: Any = RunEntry[Statement]
    head_shape: Any = Run[msgspec.Raw]  # of a run file whose turns are not decoded yet
    rules = EditionRules(refused_oddities=PROTOCOL_BUFFERS)
    topic_fields, run_fields = frozenset({"turns", "number"}), frozenset({"turns"})
    optional_parts = frozenset({"rewrite"})
    statement_threshold = 0.0  # its assessors judged turns for which some statement matters: one is always chosen
    has_texts = True  # whether its runs give the texts of passages

    def make_head(self, info: RunInfo) -> dict[str, Any]:
        given = "manual" if info.labels else "automatic"
        return {"run_name": info.name, "run_type": given if info.type == "only-response" else info.type}

    def read_head(self, head: Any) -> RunInfo:
        return RunInfo(head.run_name, head.run_type, labels=head.run_type == "manual")

    def encode_frame(self, info: RunInfo) -> tuple[bytes, bytes, bytes]:
        """The turns are the last field of an object."""
        return msgspec.json.encode(self.make_head(info))[:-1] + b',"turns":[', b",", b"]}"

    def json_path(self, number: int) -> str:
        return f"$.turns[{number}]"

    def split_entries(self, data: Data, oddities: Oddities) -> tuple[RunInfo, Iterator[Entry]]:
        try:
            head = decode(data, self.head_shape)
        except msgspec.DecodeError:
            fields = decode_spelling(data, dict[str, msgspec.Raw], "$", oddities)
            raw = {name: decode(value, list[msgspec.Raw] if name == "turns" else Any) for name, value in fields.items()}
            head = msgspec.convert(fit_to_shape(raw, self.head_shape, "$", oddities), self.head_shape)
        return self.read_head(head), ((self.json_path(n), raw) for n, raw in enumerate(head.turns))

    def make_statement(self, statement: RunStatement) -> Any:
        return Statement(statement.id or "", statement.text or "", statement.score or 0.0)

    def read_statement(self, given: Any) -> RunStatement:
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
