"""Measures of a run: cases computed by hand, and what is said where a run does not fit."""

import math
from pathlib import Path

import pytest

from agent.evaluation import Scores, evaluate_search, measured, p_value, read_qrels
from schemas.errors import InvalidInputError, UsageError
from tests.test_topics import IKAT_2024, write

QRELS = """\
0_1 0 bread:1 2
0_1 0 bread:2 1
0_1 0 music:1 0
0_2 0 music:1 0
0_3 0 bread:9 1
"""
RUN = """\
0_1 Q0 music:1 1 3.0 ours
0_1 Q0 bread:1 2 2.0 ours
0_1 Q0 other:1 3 1.0 ours
0_2 Q0 music:1 1 3.0 ours
"""


@pytest.fixture
def scores(tmp_path: Path) -> Scores:
    runs = [write(tmp_path / "ours.trec", RUN)]
    [scores] = evaluate_search(runs, write(tmp_path / "qrels", QRELS), None)
    return scores


def test_measures_by_hand(scores: Scores) -> None:
    """0_1: the best passage is second, the other one is missing. 0_2 has nothing relevant. 0_3 is not in the run."""
    assert set(scores.turns) == {"0_1", "0_3"}
    assert scores.missing == 1
    found = scores.turns["0_1"]
    ideal = 2 / math.log2(2) + 1 / math.log2(3)
    assert found["nDCG@3"] == found["nDCG@5"] == pytest.approx((2 / math.log2(3)) / ideal)
    assert found["RR"] == 0.5
    assert (found["R@10"], found["R@100"]) == (0.5, 0.5)
    assert found["AP"] == pytest.approx(0.5 / 2)
    assert set(scores.turns["0_3"].values()) == {0.0}
    assert scores.mean("RR") == 0.25


def test_topics_judge_by_their_own_passages(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", IKAT_2024)
    [scores] = evaluate_search([write(tmp_path / "run", RUN)], None, topics)
    assert {turn: found["RR"] for turn, found in scores.turns.items()} == {"0_1": 0.5}


def test_a_paired_test_knows_a_difference_from_none() -> None:
    gold = {str(n): {"a": 1} for n in range(20)}
    right = measured("right", {turn: {"a": 2.0, "b": 1.0} for turn in gold}, gold)
    wrong = measured("wrong", {turn: {"a": 1.0, "b": 2.0 + (int(turn) % 2)} for turn in gold}, gold)
    mixed = measured("mixed", {turn: {"a": float(int(turn) % 2), "b": 0.5} for turn in gold}, gold)
    assert p_value(right, right, "RR") == 1.0
    assert p_value(right, mixed, "RR") < 0.01
    assert p_value(mixed, wrong, "nDCG@5") < 0.01
    assert right.mean("RR") == 1.0


def test_bad_labels_are_refused_with_the_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"qrels:2: is not `turn 0 id level`"):
        read_qrels(write(tmp_path / "qrels", "0_1 0 a 1\n0_1 0 a relevant\n"))
    with pytest.raises(InvalidInputError, match="holds no relevant passage"):
        evaluate_search([], write(tmp_path / "none", "0_1 0 a 0\n"), None)
    with pytest.raises(UsageError, match="either --qrels or --topics"):
        evaluate_search([], None, None)
