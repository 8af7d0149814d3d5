"""The support check: a table of sentences that passages support and do not, and what is said of those they do not."""

from collections import Counter

import pytest

from agent.turn.attribution import supporting_ids, why_misstated, why_unsupported
from benchmarks.support_check import PAIRS, Pair, measure_check, read_pairs
from schemas.records import Passage
from tests.conftest import ROOT

BREAD = "Rice bread keeps for two days in a tin. Freezing, which harms no loaf, keeps it fresh for 4,500 hours."


LEASE = (
    "The tenant may keep a dog only with written permission. If it barks, it goes in May. Two of its five toys stay."
)
SECOND = ROOT / "tests" / "cases" / "support_pairs_2.jsonl"


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return read_pairs(PAIRS)


def test_nothing_unsupported_is_taken_for_supported(pairs: list[Pair]) -> None:
    """Precision is what a reader relies on; recall is what a writing model loses. The held-out part shaped no rule.

    By the pairs of the second file the rules of conditions and hedges were found, so they are no measure of them.
    """
    second = read_pairs(SECOND)
    assert [Counter(pair.supported for pair in table)[True] for table in (pairs, second)] == [135, 60]
    assert [len(pairs), len(second)] == [276, 120]
    parts = {part: [pair for pair in pairs if pair.part == part] for part in ("rules", "held out")} | {"second": second}
    measured = {part: measure_check(table) for part, table in parts.items()}
    assert {precision for precision, _ in measured.values()} == {1.0}
    assert all(measured[part][1] >= least for part, least in (("rules", 0.45), ("held out", 0.4), ("second", 0.15)))
    for kind in ("verbatim", "shortened"):
        found = [not why_unsupported(pair.sentence, pair.passage) for pair in pairs if pair.kind == kind]
        assert sum(found) / len(found) >= 0.9


REASONS = [
    ("Rice bread keeps for two days.", ""),
    ("In a tin, rice bread keeps for 2 days.", ""),
    ("Freezing keeps it fresh for 4500 hours.", ""),
    ("Rice bread keeps for nine days in a tin.", "the passage does not say 9"),
    ("Rye bread keeps for two days in a tin.", "the passage does not say rye"),
    ("Rice bread does not keep for two days.", "only one of them negates keep, 2, day"),
    ("Freezing harms a loaf.", "only one of them negates loaf"),
    (
        "Two days keep rice bread in a tin.",
        "no sentence of the passage says 2 day keep rice bread tin in this order",
    ),
    ("It is.", "it says nothing"),
    ("harms no loaf, keeps it fresh for 4,500 hours.", ""),
]
CONDITIONS = [
    ("The tenant may keep a dog.", "it leaves out 'only'"),
    ("The tenant keeps a dog only with written permission.", "it leaves out 'may'"),
    ("The tenant may keep a dog only with permission.", "it leaves out 'only'"),
    ("It goes in May.", "it leaves out 'if'"),
    ("If it barks, it goes in May.", ""),
    ("If it goes, it barks in May.", "the passage does not say if goe"),
    ("It barks because it goes in May.", "it leaves out 'if'"),
    ("Five toys stay.", "it leaves out 'two'"),
    ("* | -", "it says nothing"),
]


def test_the_reason_is_told() -> None:
    assert [why_unsupported(sentence, BREAD) for sentence, _ in REASONS] == [reason for _, reason in REASONS]
    assert [why_misstated(sentence, LEASE) for sentence, _ in CONDITIONS] == [reason for _, reason in CONDITIONS]


def test_supporters_are_those_that_say_it_and_what_stands_before_a_quotation_counts() -> None:
    passages = [Passage("a", BREAD), Passage("b", "Brass."), Passage("c", "Bread of rice. Rice bread keeps two days.")]
    assert supporting_ids("Rice bread keeps for two days.", passages) == ("a", "c")
    assert why_unsupported("Eat the berries raw.", "Never eat the berries raw.")
    assert why_unsupported("The plant is safe for cats.", "It is not true that the plant is safe for cats.")
