"""The direct answer: own cases, half of them traps, a third held out while the rules were written."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agent.turn.attribution import supporting_ids
from agent.turn.direct_answer import MAX_EVIDENCE, DirectAnswer, choose_direct_answer, to_sentence
from agent.turn.question_kinds import recognise_kind
from agent.turn.spans.answer_spans import find_spans
from agent.turn.spans.question_words import Evidence, stem_words
from indexes.documents.reading import parse_document
from indexes.text.sentences import split_sentences
from schemas.records import Passage
from tests.conftest import EXAMPLES, ROOT

CASES: list[dict[str, Any]] = json.loads((ROOT / "tests" / "cases" / "direct_answers.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Figures:
    """How many of the spans given are right, and how many of the spans there are were given."""

    precision: float
    recall: float
    wrong: tuple[str, ...]


def choose(case: dict[str, Any]) -> DirectAnswer | None:
    evidence = [Evidence(text, heading) for heading, text in case["from"]]
    return choose_direct_answer(case["ask"], recognise_kind(case["ask"]), evidence)


def answer(case: dict[str, Any]) -> str | None:
    found = choose(case)
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


@pytest.mark.parametrize("case", CASES, ids=[case["ask"] for case in CASES])
def test_every_span_stands_in_its_sentence(case: dict[str, Any]) -> None:
    for _, text in case["from"]:
        for span in find_spans(recognise_kind(case["ask"]), text):
            assert text[span.start : span.end] == span.text != ""


def test_a_sure_span_is_supported_as_a_sentence_of_its_own() -> None:
    unsupported = []
    for case in CASES:
        found = choose(case)
        if found and not found.is_verdict:
            passage = Passage("p", case["from"][found.sentence_index][1])
            if not supporting_ids(to_sentence(found.text), [passage]):
                unsupported.append(found.text)
    # "3. Juli" is two sentences to an English splitter.
    assert not [span for span in unsupported if not re.search(r"\d\. [A-Z]", span)]


@pytest.mark.parametrize(
    ("span", "shown"),
    [("nine days", "Nine days."), ("19 May", "19 May."), ("noon", "Noon."), ("7 a.m.", "7 a.m."), ("Yes", "Yes.")],
)
def test_a_span_is_shown_as_a_sentence(span: str, shown: str) -> None:
    assert to_sentence(span) == shown


def test_only_the_first_sentences_are_looked_at() -> None:
    asked = "How long does the rye bread keep?"
    other, right = Evidence("Rye is sown in autumn."), Evidence("The rye bread keeps for nine days.")
    kind = recognise_kind(asked)
    found = choose_direct_answer(asked, kind, [other, right])
    assert found
    assert (found.text, found.sentence_index) == ("nine days", 1)
    assert choose_direct_answer(asked, kind, [*[other] * MAX_EVIDENCE, right]) is None


def test_own_documents_have_most_of_their_facts_as_spans() -> None:
    """The sentence with the fact is given, under its title."""
    cases = json.loads((ROOT / "tests" / "cases" / "document_questions.json").read_text(encoding="utf-8"))
    given = []
    for case in cases:
        path = EXAMPLES / "documents" / case["in"]
        passages = parse_document(path, case["in"], path.read_bytes()).passages
        texts = [(text, passage.title) for passage in passages for text in split_sentences(passage.text)]
        evidence = next(Evidence(text, title) for text, title in texts if case["fact"] in text)
        found = choose_direct_answer(case["ask"], recognise_kind(case["ask"]), [evidence])
        given += [(found.text, case["fact"])] if found else []
    assert not [(span, fact) for span, fact in given if not set(stem_words(span)) & set(stem_words(fact))]
    assert len(given) >= 0.7 * len(cases)
