"""The support check: a table of sentences that passages support and do not."""

from collections import Counter

import pytest

from agent.turn.attribution import is_supported, supporting_ids
from agent.turn.writing.paraphrase import is_meant, keeps_order
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
        found = [is_supported(pair.sentence, pair.passage) for pair in pairs if pair.kind == kind]
        assert sum(found) / len(found) >= 0.9


CASES = [
    ("Rice bread keeps for two days.", True),
    ("In a tin, rice bread keeps for 2 days.", True),
    ("Freezing keeps it fresh for 4500 hours.", True),
    ("Rice bread keeps for nine days in a tin.", False),
    ("Rye bread keeps for two days in a tin.", False),
    ("Rice bread does not keep for two days.", False),
    ("Freezing harms a loaf.", False),
    ("Two days keep rice bread in a tin.", False),
    ("It is.", False),
    ("harms no loaf, keeps it fresh for 4,500 hours.", True),
]


@pytest.mark.parametrize(("sentence", "supported"), CASES)
def test_words_numbers_negations_and_order_count(sentence: str, supported: bool) -> None:
    assert is_supported(sentence, BREAD) == supported


def test_supporters_are_those_that_say_it_and_what_stands_before_a_quotation_counts() -> None:
    passages = [Passage("a", BREAD), Passage("b", "Brass."), Passage("c", "Bread of rice. Rice bread keeps two days.")]
    assert supporting_ids("Rice bread keeps for two days.", passages) == ("a", "c")
    assert not is_supported("Eat the berries raw.", "Never eat the berries raw.")
    assert not is_supported("The plant is safe for cats.", "It is not true that the plant is safe for cats.")


def test_what_a_large_model_writes_is_held_against_what_it_cites(pairs: list[Pair]) -> None:
    """The words in the order of a sentence, with names, numbers, negations and conditions."""
    units = [(pair, [unit.text for unit in split_units(Passage("", pair.passage))]) for pair in pairs]
    taken = [
        pair.supported
        for pair, texts in units
        if is_meant(pair.sentence, texts, "", "") and keeps_order(pair.sentence, texts, "")
    ]
    assert sum(taken) / len(taken) >= 0.98
    assert sum(taken) >= 0.4 * sum(pair.supported for pair in pairs)
