"""Measures of a run: cases computed by hand, and what is said where a run does not fit."""

import math
from pathlib import Path

import pytest

from agent.evaluation import ptkb
from agent.evaluation.scores import RankedScores, evaluate_search, measure_search, p_value, read_qrels
from agent.runs.export import export_run
from schemas.errors import InvalidInputError, UsageError
from tests.conftest import EXAMPLES
from tests.test_topics import IKAT, write


@pytest.fixture
def example_run(example_runs: Path) -> Path:
    return example_runs / "automatic.json"


def test_a_paired_test_knows_a_difference_from_none() -> None:
    gold = {str(n): {"a": 1} for n in range(20)}
    right = measure_search("right", {turn: {"a": 2.0, "b": 1.0} for turn in gold}, gold)
    wrong = measure_search("wrong", {turn: {"a": 1.0, "b": 2.0 + (int(turn) % 2)} for turn in gold}, gold)
    mixed = measure_search("mixed", {turn: {"a": float(int(turn) % 2), "b": 0.5} for turn in gold}, gold)
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


PTKB_QRELS = """\
0_1 0 1 1
0_1 0 2 1
0_1 0 3 0
0_2 0 1 0
0_3 0 1 0
0_4 0 2 2
"""
CHOSEN: RankedScores = {"0_1": {"3": 1.0, "1": 0.5}, "0_2": {}, "0_3": {"1": 1.0}}


def test_statement_measures_by_hand(tmp_path: Path) -> None:
    """0_1: one of two, in second place. 0_2: rightly none. 0_3: one where none is relevant. 0_4 is not in the run."""
    scores = ptkb.measure_ptkb("ours", CHOSEN, read_qrels(write(tmp_path / "qrels", PTKB_QRELS)))
    assert scores.missing == 1
    first = scores.turns["0_1"]
    assert (first["P"], first["R"], first["F1"], first["RR"]) == (0.5, 0.5, 0.5, 0.5)
    assert first["P@3"] == pytest.approx(1 / 3)
    assert first["nDCG@3"] == first["nDCG"] == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert first["AP"] == 0.25
    assert scores.turns["0_2"] == {"P": 1.0, "R": 1.0, "F1": 1.0, "none": 1.0}
    assert scores.turns["0_3"] == {"P": 0.0, "R": 0.0, "F1": 0.0, "none": 0.0}
    assert set(scores.turns["0_4"].values()) == {0.0}
    assert scores.mean("F1") == pytest.approx((0.5 + 1 + 0 + 0) / 4)
    assert scores.mean("none") == 0.5
    assert scores.mean("RR") == 0.25


@pytest.mark.parametrize("edition", IKAT)
def test_statements_of_every_edition_are_judged_alike(tmp_path: Path, example_run: Path, edition: str) -> None:
    """A run exported to another edition, with scores, ids or texts for statements, has the same measures."""
    export_run(example_run.with_name("automatic.trace.jsonl"), edition, tmp_path / "run", "r", "t", overwrite=False)
    topics = EXAMPLES / "topics.json"
    [ours], [theirs] = (ptkb.evaluate_ptkb([run], None, topics) for run in (example_run, tmp_path / "run"))
    assert ours.turns == theirs.turns
    assert ours.mean("R") > 0
    assert ours.missing == 0


def test_texts_need_the_topics_to_be_known(tmp_path: Path, example_run: Path) -> None:
    trace, run = example_run.with_name("automatic.trace.jsonl"), tmp_path / "run"
    export_run(trace, "ikat-2025", run, "r", "t", overwrite=False)
    with pytest.raises(UsageError, match="gives statements as texts"):
        ptkb.evaluate_ptkb([run], write(tmp_path / "qrels", "1_1 0 1 1\n"), None)
    with pytest.raises(UsageError, match="--qrels or --topics"):
        ptkb.evaluate_ptkb([run], None, None)
    with pytest.raises(InvalidInputError, match="is no run"):
        ptkb.evaluate_ptkb([write(tmp_path / "none", "{")], None, EXAMPLES / "topics.json")


OF_2025 = "1_1 0 ptkb-1-0 1\n1_1 0 ptkb-1-1 0.0\n1_2 0 ptkb-1-1 2.0\n"


@pytest.mark.parametrize("with_topics", [True, False])
def test_labels_of_2025_are_those_of_our_ids(with_topics: bool, tmp_path: Path, example_run: Path) -> None:
    topics = EXAMPLES / "topics.json" if with_topics else None
    labels = write(tmp_path / "2025", OF_2025), write(tmp_path / "ours", "1_1 0 1 1\n1_1 0 2 0\n1_2 0 2 2\n")
    [theirs], [ours] = (ptkb.evaluate_ptkb([example_run], path, topics) for path in labels)
    assert theirs.turns == ours.turns
    assert ours.mean("R") > 0


def test_labels_that_match_nothing_are_refused(tmp_path: Path, example_run: Path) -> None:
    for labels, message in (
        ("1_1 0 doc-7 1\n", "no label is of a statement of the topics: the labels have turn 1_1, statement doc-7"),
        ("1_1 0 ptkb-7-0 1\n", "no label is of a statement of the topics"),
        ("77_1 0 1 1\n", "none of the turns that have labels: it has '0_1', the labels have '77_1'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ptkb.evaluate_ptkb([example_run], write(tmp_path / "qrels", labels), EXAMPLES / "topics.json")
