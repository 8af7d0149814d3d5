"""SCAI-QReCC 2021: questions and runs.

Differs from iKAT in: a row is a turn; `Context` is the conversation before it (question, answer, question, ...; where
it is absent our own answers are), and there is no PTKB; every part of a run may be left out; no passage is marked as
used, and there is no limit of length. The labels (`Truth_*`) may stand in the same file. Source: the README of the
organisers' repository and its `code/evaluation-script/scai-qrecc21-evaluator.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from agent.tracks.edition import Edition
from agent.tracks.ikat.ikat_2023 import NonEmpty
from agent.tracks.lenient_reading import check_unique
from agent.tracks.rules import EditionRules
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn
from schemas.records import Message, Problem, RunInfo, Topic, Topics, Turn, TurnLabels

Number = Annotated[int, Meta(ge=0)]


class Row(Struct, forbid_unknown_fields=True, rename=str.capitalize):
    """One turn of a conversation. The labels, and the notes of the organisers' training file, may be absent."""

    conversation_no: Number
    turn_no: Annotated[int, Meta(ge=1)]
    question: NonEmpty
    context: list[str] | None = None
    truth_rewrite: str = ""
    truth_passages: list[str] = []
    truth_answer: str = ""
    transformer_rewrite: str = ""
    conversation_source: str = ""


class Truth(Struct, forbid_unknown_fields=True, rename=str.capitalize):
    """One turn of the organisers' `ground-truth.json`; an empty part is one for which there is no truth.

    {"Conversation_no": 1, "Turn_no": 2, "Truth_rewrite": "What may I eat on a vegetarian Mediterranean diet?",
     "Truth_passages": ["clueweb22-en0035-25-01897:1"], "Truth_answer": "Vegetables, beans, nuts and olive oil."}
    """

    conversation_no: Number
    turn_no: Annotated[int, Meta(ge=1)]
    truth_rewrite: str
    truth_passages: list[str]
    truth_answer: str


class RunEntry(Struct, forbid_unknown_fields=True, rename=str.capitalize, omit_defaults=True):
    """One turn of a run."""

    conversation_no: Number
    turn_no: Annotated[int, Meta(ge=1)]
    model_rewrite: str | UnsetType = UNSET
    model_passages: Annotated[dict[NonEmpty, float], Meta(description="Id to score; higher is better.")] | UnsetType = (
        UNSET
    )
    model_answer: str | UnsetType = UNSET


class Qrecc(Edition):
    name = "qrecc"
    topics_shape = list[Row]
    run_shape: Any = list[RunEntry]
    entry_shape = RunEntry
    rules = EditionRules(cites=False, statements=False, responses=1, collection="any")
    topic_fields, run_fields = frozenset({"Conversation_no", "Question"}), frozenset({"Conversation_no"})
    optional_parts = frozenset({"rewrite", "passages", "answer"})

    def detects_run(self, fields: Mapping[str, Any]) -> bool:
        """Questions and truths have the same numbers, but nothing of a model's."""
        others = any(name == "Question" or name.startswith("Truth_") for name in fields)
        return super().detects_run(fields) and (not others or any(name.startswith("Model_") for name in fields))

    def read_topics(self, raw: Sequence[Row]) -> Topics:
        """Rows of one conversation become a topic, in the order in which conversations first appear."""
        what = "Context is not question, answer, question, answer, ..."
        unpaired = [Problem(f"turn {turn_id(row)}", what) for row in raw if row.context and len(row.context) % 2]
        check_unique([("turn", turn_id(row)) for row in raw], unpaired)
        turns: dict[int, list[Turn]] = {}
        for row in raw:
            turns.setdefault(row.conversation_no, []).append(Turn(turn_id(row), row.question, _read_history(row)))
        topics = tuple(Topic(str(number), (), tuple(found)) for number, found in turns.items())
        labels = {
            turn_id(row): TurnLabels(row.truth_rewrite, row.truth_answer, (), tuple(row.truth_passages)) for row in raw
        }
        return Topics(self.name, topics, labels)

    def make_entry(self, turn: RunTurn, _info: RunInfo) -> RunEntry:
        """What was left out of the run is not there."""
        if len(turn.responses) > 1:
            raise ValueError("a turn has one answer")
        conversation, _, number = turn.turn_id.partition("_")
        response = turn.responses[0]
        passages = UNSET if response.passages is None else {passage.id: passage.score for passage in response.passages}
        rewrite = UNSET if turn.rewrite is None else turn.rewrite
        answer = UNSET if response.text is None else response.text
        return RunEntry(int(conversation), int(number), rewrite, passages, answer)

    def read_entry(self, entry: RunEntry, where: str, _info: RunInfo) -> RunTurn:
        rewrite, ranking, answer = entry.model_rewrite, entry.model_passages, entry.model_answer
        passages = None if ranking is UNSET else tuple(RunPassage(id, score) for id, score in ranking.items())
        response = RunResponse(1, None if answer is UNSET else answer, passages, where=where)
        return RunTurn(turn_id(entry), (response,), None if rewrite is UNSET else rewrite, where)


def turn_id(row: Row | Truth | RunEntry) -> str:
    """`<conversation>_<turn>`."""
    return f"{row.conversation_no}_{row.turn_no}"


def _read_history(row: Row) -> tuple[Message, ...] | None:
    if row.context is None:
        return () if row.turn_no == 1 else None
    return tuple(Message("assistant" if n % 2 else "user", text) for n, text in enumerate(row.context))


EDITION: Edition = Qrecc()
