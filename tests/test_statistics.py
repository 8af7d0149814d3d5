"""Rescoring: equal to cases computed by hand."""

import math

import pytest

from agent.tasks.touche.query_likelihood import CollectionStatistics, Dirichlet
from indexes.text.analysis import extract_stems

TEXTS = [
    "Rice bread is made without wheat. Rice flour holds no gluten at all.",
    "Rice bread keeps for two days in a tin. Freezing rice bread keeps it fresh for a month.",
    "Rye bread keeps for a week. Rye flour holds gluten, as wheat does.",
    "The trumpet keeps its tune for a long concert. It is made of brass.",
    "Ferns want water.",
]
KNOWN = CollectionStatistics.count(TEXTS)


def test_what_is_counted() -> None:
    assert (KNOWN.passages, KNOWN.words) == (5, sum(len(extract_stems(text)) for text in TEXTS))
    assert (KNOWN.passages_with["rice"], KNOWN.times["rice"]) == (2, 4)


def test_dirichlet_by_hand() -> None:
    """log((tf + mu p) / (length + mu)) for each word of the query, less log p, which is the same for all passages."""
    words = extract_stems(TEXTS[0])
    mu = 10.0
    expected = 0.0
    for word in ("rice", "tune"):
        p = KNOWN.times[word] / KNOWN.words
        expected += math.log((words.count(word) + mu * p) / (len(words) + mu)) - math.log(p)
    assert Dirichlet(KNOWN, mu)({"rice": 1.0, "tune": 1.0, "xyzzy": 1.0}, words) == pytest.approx(expected, abs=1e-9)


def test_a_weight_counts_like_a_word_said_again() -> None:
    score = Dirichlet(KNOWN)
    assert score({"rice": 2.0}, extract_stems(TEXTS[1])) == pytest.approx(
        2 * score({"rice": 1.0}, extract_stems(TEXTS[1]))
    )
