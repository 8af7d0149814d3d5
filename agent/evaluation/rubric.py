"""Rubrics: questions that a good answer answers, how well an answer does, and the scores that follow.

Grades go from 0 (no answer) to 5 (complete and right), as in EXAM++ and RUBRIC (Farzi and Dietz, 2024). `cover` is the
share of questions with at least a certain grade, 4 as there; `grade` is the mean grade.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MEASURES = ("cover", "grade")
MAX_GRADE = 5
MIN_GRADE = 4  # from which a question counts as answered


@dataclass(frozen=True, slots=True)
class Question:
    """One question that a good answer answers."""

    text: str
    id: str = ""
    grade: int | None = None  # how well an answer answers it, from 0 to 5; None where nobody judged


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """One answer of a run and how well it answers each question; without run and text, the questions of a turn."""

    turn_id: str
    query: str
    run: str
    text: str
    questions: tuple[Question, ...]


def score_questions(questions: Sequence[Question], min_grade: int = MIN_GRADE) -> dict[str, float]:
    """The scores of one answer, by `MEASURES`. A question without a grade counts as not answered."""
    grades = [question.grade or 0 for question in questions]
    count = max(1, len(grades))
    return {"cover": sum(grade >= min_grade for grade in grades) / count, "grade": sum(grades) / count}
