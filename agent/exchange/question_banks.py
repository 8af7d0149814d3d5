"""Questions as TREC Auto-Judge's nugget banks hold them: JSON lines, one topic each.

    {"query_id": "9-1_1", "title_query": "How long does rice bread keep?", "format_version": "v3", "nugget_bank": {
       "How many days does it keep?": {"question": "How many days does it keep?", "question_id": "a1"}}}

The list of RAGTIME 2026 in place of the inner object, its `metadata` with the `topic_id`, and a single object in a file
are read, too. An answer's grades are the same with whose answer it is, and a grade in each question's `metadata`, which
Auto-Judge keeps for whoever writes it:

    {"query_id": "9-1_1", "title_query": "...", "format_version": "v3", "run_id": "ours", "answer_text": "Two days.",
     "nugget_bank": {"...": {"question": "...", "question_id": "a1", "metadata": {"grade": 5}}}}

source: `autojudge_base.nugget_data` of autojudge-base 1.0.0 (trec-auto-judge/auto-judge-base).
"""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agent.evaluation.rubric import MAX_GRADE, GradedAnswer, Question
from agent.tracks.lenient_reading import IS_ID, decode_leniently
from agent.tracks.oddities import Oddities
from schemas.errors import InvalidInputError
from schemas.wire import Data, decode

Id = Annotated[str, Meta(extra=IS_ID)]
VERSION = "v3"


class WireQuestion(Struct, omit_defaults=True):
    """A question."""

    question: str
    question_id: Id | None = None
    metadata: dict[str, Any] | None = None


class Line(Struct, omit_defaults=True):
    """The questions of one topic, and in a file of grades one answer to it."""

    query_id: Id = ""
    title_query: str | None = None
    format_version: str = ""
    run_id: str | None = None
    answer_text: str | None = None
    nugget_bank: dict[str, Any] | list[Any] | None = None
    metadata: dict[str, Any] | None = None


def decode_questions(data: Data, oddities: Oddities) -> tuple[GradedAnswer, ...]:
    """The questions of each topic, or the grades of each answer. Raises `InvalidInputError` for what is neither."""
    return tuple(_read_line(line, where, oddities) for where, line in _lines(data, oddities))


def encode_questions(answer: GradedAnswer) -> bytes:
    """One line of a file of questions, or of grades."""
    bank = {question.text: _to_wire(question) for question in answer.questions}
    run, text = answer.run or None, answer.text if answer.run else None
    return msgspec.json.encode(Line(answer.turn_id, answer.query or None, VERSION, run, text, bank)) + b"\n"


def _to_wire(question: Question) -> WireQuestion:
    grade = None if question.grade is None else {"grade": question.grade}
    return WireQuestion(question.text, question.id or None, grade)


def _lines(data: Data, oddities: Oddities) -> Iterator[tuple[str, Line]]:
    try:
        whole = decode(data, dict[str, msgspec.Raw])  # one topic over several lines
    except msgspec.DecodeError:
        whole = {}
    parts = [bytes(data)] if whole else bytes(data).splitlines()
    for number, line in enumerate(parts, start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            yield where, decode_leniently(line, Line, f"{where} $", oddities)
        except msgspec.DecodeError as error:
            remedy = 'Questions are lines of {"query_id": ..., "nugget_bank": {"...": {"question": "..."}}}.'
            raise InvalidInputError(f"is no line of questions ({error})", where=where, remedy=remedy) from error


def _read_line(line: Line, where: str, oddities: Oddities) -> GradedAnswer:
    turn_id = line.query_id or str((line.metadata or {}).get("topic_id", ""))
    if not turn_id or line.nugget_bank is None:
        raise InvalidInputError("is no line of questions: it has no `query_id`, or no `nugget_bank`", where=where)
    bank = line.nugget_bank
    given = list(bank.values()) if isinstance(bank, dict) else bank
    questions = tuple(_read_question(question, where, oddities) for question in given)
    return GradedAnswer(turn_id, line.title_query or "", line.run_id or "", line.answer_text or "", questions)


def _read_question(given: Any, where: str, oddities: Oddities) -> Question:
    try:
        read: WireQuestion = decode_leniently(msgspec.json.encode(given), WireQuestion, f"{where} question", oddities)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no question ({error})", where=where) from error
    grade = (read.metadata or {}).get("grade")
    if grade is not None and grade not in range(MAX_GRADE + 1):
        raise InvalidInputError(f"no such grade: {grade!r} (0 to {MAX_GRADE})", where=where)
    return Question(read.question, read.question_id or "", None if grade is None else int(grade))
