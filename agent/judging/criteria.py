"""What answers are judged by: nuggets that they should hold, or questions that they should answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

from agent.evaluation.nuggets import AssignedAnswer, score_nuggets
from agent.evaluation.rubric import GradedAnswer, score_questions
from agent.exchange.nugget_files import read_nuggets
from agent.exchange.nuggetizer import decode_assignments, encode_assignment
from agent.exchange.question_banks import decode_questions, encode_questions
from agent.judging.judges import open_nugget_judge, open_question_judge
from agent.judging.judging import FileForm, J, Judge
from agent.tracks.oddities import report_oddities
from indexes.storage.files import read_utf8


@dataclass(frozen=True, slots=True)
class Criteria(Generic[J]):
    """A kind of criteria: how they are read, who judges by them, and what follows."""

    name: str
    read: Callable[[Path], tuple[J, ...]]  # those of each turn, for an answer of nobody
    open_judge: Callable[[str], Judge[J]]
    form: FileForm[J]
    score: Callable[[J], dict[str, float]]
    verdicts: Callable[[J], dict[str, Any]]  # by nugget or question; None where there is none


def _read_nuggets(path: Path) -> tuple[AssignedAnswer, ...]:
    lists = read_nuggets(path).values()
    return tuple(_clear_nuggets(AssignedAnswer(n.turn_id, n.query, "", "", n.nuggets)) for n in lists)


def _clear_nuggets(answer: AssignedAnswer) -> AssignedAnswer:
    return replace(answer, nuggets=tuple(replace(nugget, assignment=None) for nugget in answer.nuggets))


def _read_questions(path: Path) -> tuple[GradedAnswer, ...]:
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        return tuple(replace(_clear_grades(found), run="", text="") for found in decode_questions(data, oddities))


def _clear_grades(answer: GradedAnswer) -> GradedAnswer:
    return replace(answer, questions=tuple(replace(question, grade=None) for question in answer.questions))


NUGGETS: Criteria[AssignedAnswer] = Criteria(
    "nuggets",
    _read_nuggets,
    open_nugget_judge,
    FileForm(encode_assignment, decode_assignments, _clear_nuggets),
    lambda answer: score_nuggets(answer.nuggets),
    lambda answer: {nugget.text: nugget.assignment for nugget in answer.nuggets},
)


def by_rubric(min_grade: int) -> Criteria[GradedAnswer]:
    """Questions, answered from that grade on."""
    return Criteria(
        "rubric",
        _read_questions,
        open_question_judge,
        FileForm(encode_questions, decode_questions, _clear_grades),
        lambda answer: score_questions(answer.questions, min_grade),
        lambda answer: {
            question.text: None if question.grade is None else question.grade >= min_grade
            for question in answer.questions
        },
    )
