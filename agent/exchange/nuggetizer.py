"""Nuggets and their assignments as the Nuggetizer writes them: JSON lines, one query each.

    {"query": "How long does rice bread keep?", "qid": "9-1_1", "nuggets": [
       {"text": "Rice bread keeps for two days", "importance": "vital"}]}

Assignments add the answer that they are about, and how far it says each nugget:

    {"query": "How long does rice bread keep?", "qid": "9-1_1", "answer_text": "Two days.", "response_length": 2,
     "run_id": "ours", "nuggets": [
       {"text": "Rice bread keeps for two days", "importance": "vital", "assignment": "support"}]}

source: README and `nuggetizer.core.types` of nuggetizer 0.0.5 (castorini/nuggetizer). Where a label could not be made
it says "failed"; we read that as none, and write none as null.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from agent.evaluation.nuggets import AssignedAnswer, Assignment, Importance, Nugget, NuggetList
from agent.tracks.lenient_reading import IS_ID, decode_leniently
from agent.tracks.oddities import Oddities
from indexes.text.response_length import count_whitespace_words
from schemas.errors import InvalidInputError
from schemas.wire import Data

FAILED = "failed"


class WireNugget(Struct):
    """A nugget; `assignment` is in files of assignments only."""

    text: str
    importance: str | None = None
    assignment: str | msgspec.UnsetType | None = msgspec.UNSET


class Line(Struct):
    """One query, and in a file of assignments one answer to it."""

    qid: Annotated[str, Meta(extra=IS_ID)]
    nuggets: list[WireNugget]
    query: str = ""
    answer_text: str | msgspec.UnsetType = msgspec.UNSET
    response_length: int | msgspec.UnsetType = msgspec.UNSET
    run_id: str | msgspec.UnsetType = msgspec.UNSET


def decode_nuggets(data: Data, oddities: Oddities) -> tuple[NuggetList, ...]:
    """The nuggets of each query. Raises `InvalidInputError` for a line that is none, and for a query twice."""
    lists = tuple(
        NuggetList(line.qid, line.query, _read_nuggets(line, where)) for where, line in _lines(data, oddities)
    )
    if len({nuggets.turn_id for nuggets in lists}) < len(lists):
        remedy = "Assignments of several runs are read with --judge FILE."
        raise InvalidInputError("has nuggets for one turn twice", remedy=remedy)
    return lists


def encode_nuggets(lists: Iterable[NuggetList]) -> Iterator[bytes]:
    """The lines of a file of nuggets."""
    for nuggets in lists:
        wire = [WireNugget(nugget.text, nugget.importance) for nugget in nuggets.nuggets]
        yield msgspec.json.encode(Line(nuggets.turn_id, wire, nuggets.query)) + b"\n"


def decode_assignments(data: Data, oddities: Oddities) -> tuple[AssignedAnswer, ...]:
    """The answers and what they hold. Raises `InvalidInputError` for a line that is none."""
    return tuple(
        AssignedAnswer(line.qid, line.query, line.run_id or "", line.answer_text or "", _read_nuggets(line, where))
        for where, line in _lines(data, oddities)
    )


def encode_assignment(answer: AssignedAnswer) -> bytes:
    """One line of a file of assignments."""
    wire = [WireNugget(nugget.text, nugget.importance, nugget.assignment) for nugget in answer.nuggets]
    words = count_whitespace_words(answer.text)
    return msgspec.json.encode(Line(answer.turn_id, wire, answer.query, answer.text, words, answer.run)) + b"\n"


def _lines(data: Data, oddities: Oddities) -> Iterator[tuple[str, Line]]:
    for number, line in enumerate(bytes(data).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            yield where, decode_leniently(line, Line, f"{where} $", oddities)
        except msgspec.DecodeError as error:
            remedy = 'Nuggets are lines of {"query": ..., "qid": ..., "nuggets": [{"text": ..., "importance": ...}]}.'
            raise InvalidInputError(f"is no line of nuggets ({error})", where=where, remedy=remedy) from error


def _read_nuggets(line: Line, where: str) -> tuple[Nugget, ...]:
    return tuple(
        Nugget(
            nugget.text,
            _read_label(nugget.importance, Importance, where),
            _read_label(nugget.assignment or None, Assignment, where),
        )
        for nugget in line.nuggets
    )


def _read_label(label: str | None, known: Any, where: str) -> Any:
    if label is None or (label := label.strip().lower()) == FAILED:
        return None
    if label not in get_args(known):
        raise InvalidInputError(f"no such label: {label!r} (known: {', '.join(get_args(known))})", where=where)
    return label
