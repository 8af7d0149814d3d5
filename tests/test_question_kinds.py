"""What a question asks for: a table of questions, kinds and nouns."""

import json

import pytest

from agent.turn.question_kinds import recognise_kind
from tests.conftest import ROOT

CASES = json.loads((ROOT / "tests" / "cases" / "question_kinds.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("question", "name", "noun"), CASES)
def test_a_question_has_its_kind(question: str, name: str, noun: str) -> None:
    kind = recognise_kind(question)
    assert (kind.name, kind.noun) == (name, noun)


def test_a_choice_names_its_options() -> None:
    assert recognise_kind("Is the tea red or green?").options == ("red", "green")
