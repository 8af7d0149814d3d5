"""Rescoring and feedback: equal to a reference, and to cases computed by hand."""

import math

import pytest
from rank_bm25 import BM25Okapi

from indexes.feedback import OWN, expanded, reciprocal_rank_fusion
from indexes.finder import Finder
from indexes.passages import PassageIndex, weighted
from indexes.statistics import Bm25, Dirichlet, Statistics
from indexes.words import stems

TEXTS = [
    "Rice bread is made without wheat. Rice flour holds no gluten at all.",
    "Rice bread keeps for two days in a tin. Freezing rice bread keeps it fresh for a month.",
    "Rye bread keeps for a week. Rye flour holds gluten, as wheat does.",
    "The trumpet keeps its tune for a long concert. It is made of brass.",
    "Ferns want water.",
]
KNOWN = Statistics.of(TEXTS)


def test_what_is_counted() -> None:
    assert (KNOWN.passages, KNOWN.words) == (5, sum(len(stems(text)) for text in TEXTS))
    assert (KNOWN.passages_with["rice"], KNOWN.times["rice"]) == (2, 4)


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4), (2.0, 1.0), (0.5, 0.0)])
@pytest.mark.parametrize("query", ["rice bread", "gluten in rye flour", "keeps keeps week", "xyzzy", ""])
def test_bm25_equals_a_reference_implementation(query: str, k1: float, b: float) -> None:
    """rank_bm25's Okapi, with the idf of Lucene in the place of its own, which can be negative."""
    documents = [stems(text) for text in TEXTS]
    reference = BM25Okapi(documents, k1=k1, b=b)
    for word in reference.idf:
        held = sum(word in document for document in documents)
        reference.idf[word] = math.log(1 + (5 - held + 0.5) / (held + 0.5))
    expected = reference.get_scores(stems(query))
    ours = Bm25(KNOWN, k1, b)
    for words, score in zip(documents, expected, strict=True):
        assert ours(weighted([(query, 1.0)]), words) == pytest.approx(score, abs=1e-6)


def test_tantivy_is_bm25_up_to_its_rounded_lengths(example_index: PassageIndex) -> None:
    """The same order and nearly the same scores: Tantivy keeps a passage's length in one byte."""
    texts = list(example_index.texts())
    ours = Bm25(Statistics.of(texts), 1.2, 0.75)
    weights = weighted([("gluten free rice bread", 1.0)])
    for number, score in example_index.rank(weights, 10):
        assert ours(weights, stems(texts[number])) == pytest.approx(score, rel=0.05)


def test_dirichlet_by_hand() -> None:
    """log((tf + mu p) / (length + mu)) for each word of the query, less log p, which is the same for all passages."""
    words = stems(TEXTS[0])
    mu = 10.0
    expected = 0.0
    for word in ("rice", "tune"):
        p = KNOWN.times[word] / KNOWN.words
        expected += math.log((words.count(word) + mu * p) / (len(words) + mu)) - math.log(p)
    assert Dirichlet(KNOWN, mu)({"rice": 1.0, "tune": 1.0, "xyzzy": 1.0}, words) == pytest.approx(expected, abs=1e-9)


def test_a_weight_counts_like_a_word_said_again() -> None:
    for score in (Bm25(KNOWN), Dirichlet(KNOWN)):
        assert score({"rice": 2.0}, stems(TEXTS[1])) == pytest.approx(2 * score({"rice": 1.0}, stems(TEXTS[1])))


@pytest.mark.parametrize("score", [Bm25(KNOWN), Dirichlet(KNOWN, 50)])
def test_a_finder_ranks_by_what_it_is_given(score: Bm25 | Dirichlet, example_index: PassageIndex) -> None:
    texts = list(example_index.texts())
    score = type(score)(Statistics.of(texts))
    words = [("rice bread", 1.0)]
    found = Finder(example_index, score=score).find(words, [], 20)
    best = max(range(len(texts)), key=lambda number: score(weighted(words), stems(texts[number])))
    assert found[0].id == example_index.id(best)
    assert {hit.id for hit in found} == {hit.id for hit in example_index.search(words, 20)}


def test_feedback_adds_the_words_of_what_was_found_first() -> None:
    joined = expanded({"bread": 2.0}, [(3.0, stems(TEXTS[0])), (1.0, stems(TEXTS[3]))])
    assert sum(joined.values()) == pytest.approx(2.0)
    assert joined["bread"] > 2.0 * OWN  # its own share, and that of the first passage
    assert joined["rice"] > joined["trumpet"] > 0  # by the passages' scores


def test_reciprocal_rank_fusion_by_hand() -> None:
    fused = dict(reciprocal_rank_fusion([["a", "b"], ["b", "c"]]))
    assert list(fused) == ["b", "a", "c"]
    assert fused["b"] == pytest.approx(1 / 62 + 1 / 61)
