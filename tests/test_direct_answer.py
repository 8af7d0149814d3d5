"""The direct answer: own cases, half of them traps, a third held out while the rules were written."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agent.turn.spans.answer_spans import find_spans
from agent.turn.direct_answer import choose_direct_answer, to_sentence
from agent.turn.question_kinds import QuestionKind, recognise_kind
from agent.turn.spans.question_words import Evidence
from tests.conftest import ROOT

CASES: list[dict[str, Any]] = json.loads((ROOT / "tests" / "cases" / "direct_answers.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Figures:
    """How many of the spans given are right, and how many of the spans there are were given."""

    precision: float
    recall: float
    wrong: tuple[str, ...]


def answer(case: dict[str, Any]) -> str | None:
    found = choose_direct_answer(
        case["ask"], recognise_kind(case["ask"]), [Evidence(text, heading) for heading, text in case["from"]]
    )
    return found.text if found else None


def measure(cases: Sequence[dict[str, Any]]) -> Figures:
    given = [(case, text) for case in cases if (text := answer(case))]
    wrong = tuple(f"{case['ask']} {text!r}, not {case['span']!r}" for case, text in given if text != case["span"])
    right = len(given) - len(wrong)
    return Figures(right / len(given), right / sum(case["span"] is not None for case in cases), wrong)


@pytest.mark.parametrize("held_out", [False, True], ids=["seen", "held out"])
def test_few_spans_are_wrong_and_most_are_found(held_out: bool) -> None:
    figures = measure([case for case in CASES if case.get("held_out", False) == held_out])
    print(figures)
    assert figures.precision >= 0.9, figures.wrong
    assert figures.recall >= 0.6
