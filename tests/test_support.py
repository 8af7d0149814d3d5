"""The support check: a table of sentences that passages support and do not, and what is said of those they do not."""

from collections import Counter

import pytest

from agent.turn.attribution import supporting_ids, why_unsupported
from agent.turn.writing.paraphrase import keeps_order, why_not_meant
from benchmarks.support_check import PAIRS, Pair, measure_check, read_pairs
from indexes.text.units import split_units
from schemas.records import Passage

BREAD = "Rice bread keeps for two days in a tin. Freezing, which harms no loaf, keeps it fresh for 4,500 hours."


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return read_pairs(PAIRS)


def test_nothing_unsupported_is_taken_for_supported(pairs: list[Pair]) -> None:
    """Precision is what a reader relies on; recall is what a writing model loses. The held-out part shaped no rule."""
    assert [len(pairs), Counter(pair.supported for pair in pairs)[True]] == [276, 135]
    for part, least in (("rules", 0.45), ("held out", 0.4)):
        precision, recall = measure_check([pair for pair in pairs if pair.part == part])
        assert (precision, recall >= least) == (1.0, True)
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


def test_the_reason_is_told() -> None:
    assert [why_unsupported(sentence, BREAD) for sentence, _ in REASONS] == [reason for _, reason in REASONS]


def test_supporters_are_those_that_say_it_and_what_stands_before_a_quotation_counts() -> None:
    passages = [Passage("a", BREAD), Passage("b", "Brass."), Passage("c", "Bread of rice. Rice bread keeps two days.")]
    assert supporting_ids("Rice bread keeps for two days.", passages) == ("a", "c")
    assert why_unsupported("Eat the berries raw.", "Never eat the berries raw.")
    assert why_unsupported("The plant is safe for cats.", "It is not true that the plant is safe for cats.")


def test_what_a_large_model_writes_is_held_against_what_it_cites(pairs: list[Pair]) -> None:
    """The words in the order of a sentence, with names, numbers, negations and conditions."""
    units = [(pair, [unit.text for unit in split_units(Passage("", pair.passage))]) for pair in pairs]
    taken = [
        pair.supported
        for pair, texts in units
        if not why_not_meant(pair.sentence, texts, "", "") and keeps_order(pair.sentence, texts, "")
    ]
    assert sum(taken) / len(taken) >= 0.98
    assert sum(taken) >= 0.4 * sum(pair.supported for pair in pairs)
