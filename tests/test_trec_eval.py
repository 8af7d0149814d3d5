"""Our measures are trec_eval's, by pytrec_eval: ties, 32-bit floats, levels, turns that lack something."""

import json
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.evaluation.scores import Qrels, RankedScores, measure_search, name_measures, read_qrels
from cli import app
from schemas.errors import InvalidInputError
from tests.conftest import examples
from tests.test_topics import write

THEIRS = {"nDCG": "ndcg_cut_", "P": "P_", "R": "recall_", "AP": "map", "RR": "recip_rank"}
IDS = [f"p:{n}" for n in (*range(12), 100)] + ["P:1", "é", "中"]
TURNS = ["1_1", "1_2", "1_3", "2_1"]
SCORES = st.sampled_from([0.0, -1.5, 1.0, 1 + 1e-9, 1 - 1e-9, 1 + 1e-4, 2.0, 1e6, 1e6 + 0.01, 1e300])  # many are equal
RUNS = st.dictionaries(st.sampled_from(TURNS), st.dictionaries(st.sampled_from(IDS), SCORES, max_size=14), max_size=4)
LABELS = st.dictionaries(st.sampled_from(IDS), st.integers(-2, 4), min_size=1, max_size=10).filter(
    lambda labels: max(labels.values()) >= 0  # pytrec_eval writes past its memory otherwise
)
QRELS = st.dictionaries(st.sampled_from(TURNS), LABELS, min_size=1, max_size=4)


def to_their_name(measure: str) -> str:
    """`P(rel=2)@5` is `P_5`, at another level."""
    name, _, cutoff = measure.partition("@")
    return THEIRS[name.partition("(")[0]] + cutoff


def their_means(run: RankedScores, qrels: Qrels, rel_level: int) -> dict[str, float]:
    """As `trec_eval -c` has them: over all turns with labels, 0 for those that the run lacks."""
    wanted = {"ndcg_cut.1,3,5,10", "P.1,3,5,10", "recall.10,100", "map", "recip_rank"}
    found = pytrec_eval.RelevanceEvaluator(qrels, wanted, relevance_level=rel_level).evaluate(run)
    names = (to_their_name(measure) for measure in name_measures())
    return {name: sum(turn[name] for turn in found.values()) / len(qrels) for name in names}


@examples(1000)
@given(RUNS, QRELS, st.integers(1, 3))
def test_means_are_those_of_trec_eval(run: RankedScores, qrels: Qrels, rel_level: int) -> None:
    ours = measure_search("ours", run, qrels, rel_level)
    theirs = their_means(run, qrels, rel_level)
    for measure in name_measures(rel_level):
        assert abs(ours.mean(measure) - theirs[to_their_name(measure)]) < 1e-9, measure


def test_a_turn_without_a_label_from_zero_on_counts_nothing() -> None:
    """It ends a process that hands it to pytrec_eval."""
    qrels: Qrels = {"1_1": {"a": -2, "b": -1}, "1_2": {"a": 1, "b": -1}}
    for _ in range(100):
        found = measure_search("ours", {"1_1": {"a": 1.0}, "1_2": {"b": 2.0, "a": 1.0}}, qrels)
        assert found.by_turn("RR") == {"1_1": 0.0, "1_2": 0.5}


TIES = """\
1_1 Q0 a 1 1.0 theirs
1_1 Q0 b 2 1.0 theirs
1_1 Q0 c 3 1.0 theirs
1_1 Q0 d 4 0.99995 theirs
"""


LEVELS = {"2": 2, "4.0": 4, "-2.0": -2, "1.7": 1, "-0.5": 0, "+1": 1}
NO_LEVELS = ("high", "nan", "-inf", "1001", "2147483647", "9" * 20, "1e3", "0x1", ".", "")  # memory for each level


def test_levels_are_read_as_trec_eval_reads_them(tmp_path: Path) -> None:
    labels = "".join(f"1_1\t0\t{written}\t{written}\r\n" for written in LEVELS)
    assert read_qrels(write(tmp_path / "qrels", labels)) == {"1_1": LEVELS}
    for written in NO_LEVELS:
        with pytest.raises(InvalidInputError, match="qrels:1: is not `turn 0 id level`"):
            read_qrels(write(tmp_path / "qrels", f"1_1 0 a {written}\n"))


def test_the_level_that_counts_can_be_chosen(tmp_path: Path) -> None:
    run = write(tmp_path / "run", TIES)
    labels = write(tmp_path / "qrels", "1_1 0 c 1\n1_1 0 a 2.0\n1_2 0 a 1.0\n")
    command = ["eval", "search", str(run), "--qrels", str(labels), "--json", "--rel-level"]
    [plain], [strict] = (json.loads(CliRunner().invoke(app, [*command, level]).stdout) for level in "12")
    assert plain["mean"]["RR"] == 0.5
    assert strict["turns"]["1_1"]["RR(rel=2)"] == pytest.approx(1 / 3)
    assert strict["turns"]["1_2"]["P(rel=2)@1"] == 0.0
    assert strict["mean"]["nDCG@3"] == plain["mean"]["nDCG@3"]
    refused = CliRunner().invoke(app, [*command, "3"])
    assert (refused.exit_code, "holds no relevant passage of level 3 or above" in refused.stderr) == (5, True)
