"""Files of nuggets and of questions, and of the verdicts on them, as the Nuggetizer, iKAT and Auto-Judge have them.

The Nuggetizer's are JSON lines, one query each; assignments add the answer that they are about, and how far it says
each nugget:

    {"query": "How long does rice bread keep?", "qid": "9-1_1", "answer_text": "Two days.", "response_length": 2,
     "run_id": "ours", "nuggets": [
       {"text": "Rice bread keeps for two days", "importance": "vital", "assignment": "support"}]}

Questions stand in the nugget banks of TREC Auto-Judge: JSON lines, one topic each; the list of RAGTIME 2026 in place of
the inner object, its `metadata` with the `topic_id`, and a single object in a file are read, too. Grades are the same
with whose answer it is, and a grade in each question's `metadata`, which Auto-Judge keeps for whoever writes it:

    {"query_id": "9-1_1", "title_query": "...", "format_version": "v3", "run_id": "ours", "answer_text": "Two days.",
     "nugget_bank": {"...": {"question": "...", "question_id": "a1", "metadata": {"grade": 5}}}}

source: README and `nuggetizer.core.types` of nuggetizer 0.0.5 (castorini/nuggetizer), where a label that could not be
made is "failed"; `autojudge_base.nugget_data` of autojudge-base 1.0.0 (trec-auto-judge/auto-judge-base).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from agent.evaluation.judged_answers import MAX_GRADE, Assignment, Criterion, Importance, JudgedAnswer
from agent.tracks.lenient_reading import IS_ID, decode_leniently
from agent.tracks.oddities import Oddities, report_oddities
from indexes.storage.files import read_utf8
from indexes.text.response_length import count_whitespace_words
from schemas.errors import InvalidInputError
from schemas.wire import Data, decode

Id = Annotated[str, Meta(extra=IS_ID)]
L = TypeVar("L", bound=Struct)
FAILED = "failed"
NUGGETS_REMEDY = 'Nuggets are lines of {"query": ..., "qid": ..., "nuggets": [{"text": ..., "importance": ...}]}.'
QUESTIONS_REMEDY = 'Questions are lines of {"query_id": ..., "nugget_bank": {"...": {"question": "..."}}}.'


class WireNugget(Struct):
    """A nugget; `assignment` is in files of assignments only."""

    text: str
    importance: str | None = None
    assignment: str | None = None


class NuggetLine(Struct):
    """One query, and in a file of assignments one answer to it."""

    qid: Id
    nuggets: list[WireNugget]
    query: str = ""
    answer_text: str = ""
    response_length: int = 0
    run_id: str = ""


class WireQuestion(Struct, omit_defaults=True):
    """A question."""

    question: str
    question_id: Id | None = None
    metadata: dict[str, Any] | None = None


class BankLine(Struct, omit_defaults=True):
    """The questions of one topic, and in a file of grades one answer to it."""

    query_id: Id = ""
    title_query: str | None = None
    format_version: str = ""
    run_id: str | None = None
    answer_text: str | None = None
    nugget_bank: dict[str, Any] | list[Any] | None = None
    metadata: dict[str, Any] | None = None


def read_nuggets(path: Path) -> tuple[JudgedAnswer, ...]:
    """The nuggets of each turn: of the Nuggetizer (JSON lines), or of iKAT (one JSON object).

    A file of one run's assignments is read, too; its nuggets have them. Raises `InvalidInputError` for any other file.
    """
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        ikat = _decode_object(data)
        if ikat and "nuggets" not in ikat:
            found = tuple(JudgedAnswer(id, "", "", "", tuple(_read_ikat_turn(id, each))) for id, each in ikat.items())
        else:
            found = decode_nuggets(data, oddities)
        if not found:
            raise InvalidInputError("holds no nuggets")
        if len({nuggets.turn_id for nuggets in found}) < len(found):
            remedy = "Assignments of several runs are read with --judge FILE."
            raise InvalidInputError("has nuggets for one turn twice", remedy=remedy)
    return found


def read_questions(path: Path) -> tuple[JudgedAnswer, ...]:
    """The questions of each topic, or the grades of each answer. Raises `InvalidInputError` for any other file."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        if not (found := decode_questions(data, oddities)):
            raise InvalidInputError("holds no questions")
    return found


def _read_ikat_turn(turn_id: str, given: Any) -> Iterator[Criterion]:
    """Gold nuggets as the organisers of iKAT give them: one JSON object, by turn, then by the nugget's number.

        {"9-1_1": {"1": {"text": "Rice bread keeps for two days."}, "2": "It can be frozen."}}

    The two forms of a nugget, and a list in place of the inner object, are all read.

    source: `matching/NtN.py` and `matching/NtR.py` of irlabamsterdam/CONE-RAG (Abbasiantaeb et al., 2025,
    arXiv:2503.09902), which read them so; a topic and a turn are joined as in iKAT 2024.
    """
    if not isinstance(given, dict | list):
        raise InvalidInputError("is no list of nuggets", where=f"$[{turn_id!r}]")
    for key, nugget in given.items() if isinstance(given, dict) else enumerate(given):
        text = nugget.get("text") if isinstance(nugget, dict) else nugget
        if not isinstance(text, str):
            raise InvalidInputError("is no nugget: it has no text", where=f"$[{turn_id!r}][{key!r}]")
        yield Criterion(text)


def decode_nuggets(data: Data, oddities: Oddities) -> tuple[JudgedAnswer, ...]:
    """The nuggets of each line with their assignments. Raises `InvalidInputError` for a line that is none."""

    def read(nugget: WireNugget, where: str) -> Criterion:
        verdict = _read_label(nugget.assignment or None, Assignment, where)
        return Criterion(nugget.text, verdict, _read_label(nugget.importance, Importance, where))

    lines = _decode_lines(bytes(data).splitlines(), NuggetLine, oddities, "nuggets", NUGGETS_REMEDY)
    found = ((line, tuple(read(nugget, where) for nugget in line.nuggets)) for where, line in lines)
    return tuple(JudgedAnswer(line.qid, line.query, line.run_id, line.answer_text, each) for line, each in found)


def _read_label(label: str | None, known: Any, where: str) -> Any:
    if label is None or (label := label.strip().lower()) == FAILED:
        return None
    if label not in get_args(known):
        raise InvalidInputError(f"no such label: {label!r} (known: {', '.join(get_args(known))})", where=where)
    return label


def encode_nuggets(answer: JudgedAnswer) -> bytes:
    """One line of a file of assignments; no label is null."""
    nuggets = [WireNugget(n.text, n.importance, None if n.verdict is None else str(n.verdict)) for n in answer.criteria]
    words = count_whitespace_words(answer.text)
    line = NuggetLine(answer.turn_id, nuggets, answer.query, answer.text, words, answer.run)
    return msgspec.json.encode(line) + b"\n"


def decode_questions(data: Data, oddities: Oddities) -> tuple[JudgedAnswer, ...]:
    """The questions of each line, with the grades that they have. Raises `InvalidInputError` for what is none."""
    parts = [bytes(data)] if _decode_object(data) else bytes(data).splitlines()  # one topic over several lines
    lines = _decode_lines(parts, BankLine, oddities, "questions", QUESTIONS_REMEDY)
    return tuple(_read_bank(line, where, oddities) for where, line in lines)


def _read_bank(line: BankLine, where: str, oddities: Oddities) -> JudgedAnswer:
    turn_id = line.query_id or str((line.metadata or {}).get("topic_id", ""))
    if not turn_id or line.nugget_bank is None:
        raise InvalidInputError("is no line of questions: it has no `query_id`, or no `nugget_bank`", where=where)
    given = line.nugget_bank.values() if isinstance(line.nugget_bank, dict) else line.nugget_bank
    encoded = [msgspec.json.encode(question) for question in given]
    found = _decode_lines(encoded, WireQuestion, oddities, "questions", QUESTIONS_REMEDY, f"{where} question")
    questions = []
    for place, question in found:
        grade = (question.metadata or {}).get("grade")
        if grade is not None and grade not in range(MAX_GRADE + 1):
            raise InvalidInputError(f"no such grade: {grade!r} (0 to {MAX_GRADE})", where=place)
        verdict = None if grade is None else int(grade)
        questions.append(Criterion(question.question, verdict, id=question.question_id or ""))
    return JudgedAnswer(turn_id, line.title_query or "", line.run_id or "", line.answer_text or "", tuple(questions))


def encode_questions(answer: JudgedAnswer) -> bytes:
    """One line of a file of questions, or of grades."""
    bank = {}
    for question in answer.criteria:
        grade = None if question.verdict is None else {"grade": question.verdict}
        bank[question.text] = WireQuestion(question.text, question.id or None, grade)
    run, text = answer.run or None, answer.text if answer.run else None
    return msgspec.json.encode(BankLine(answer.turn_id, answer.query or None, "v3", run, text, bank)) + b"\n"


def _decode_lines(
    lines: list[bytes], shape: type[L], oddities: Oddities, kind: str, remedy: str, name: str = "line"
) -> Iterator[tuple[str, L]]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{name} {number}"
            try:
                yield where, decode_leniently(line, shape, f"{where} $", oddities)
            except msgspec.DecodeError as error:
                raise InvalidInputError(f"is no line of {kind} ({error})", where=where, remedy=remedy) from error


def _decode_object(data: Data) -> dict[str, Any] | None:
    """A file that is one JSON object; None for any other."""
    try:
        return decode(data, dict[str, Any])
    except msgspec.DecodeError:
        return None
