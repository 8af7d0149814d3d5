"""Measures of SCAI-QReCC: cases computed by hand, which turns count, and what is said of files that do not fit."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent.evaluation.answers import evaluate_answers
from agent.evaluation.qrecc import ANSWER, EXACT, F1, REWRITE, RR, answer_measures, evaluate_qrecc
from agent.evaluation.scores import Scores
from schemas.errors import InvalidInputError
from tests.test_topics import QRECC, write
from tests.within import convagent

if TYPE_CHECKING:
    from subprocess import CompletedProcess

QUESTION, LATER = "Which bread can I eat?", "How long does rice bread keep?"
TRUTH: list[dict[str, Any]] = [
    {
        "Conversation_no": 1,
        "Turn_no": 1,
        "Truth_rewrite": QUESTION,
        "Truth_passages": ["bread:1", "bread:2"],
        "Truth_answer": "Rice bread.",
    },
    {"Conversation_no": 1, "Turn_no": 2, "Truth_rewrite": LATER, "Truth_passages": [], "Truth_answer": "Two days."},
    {"Conversation_no": 2, "Turn_no": 1, "Truth_rewrite": "Who?", "Truth_passages": ["music:1"], "Truth_answer": ""},
    {"Conversation_no": 2, "Turn_no": 2, "Truth_rewrite": "", "Truth_passages": ["music:1"], "Truth_answer": "The."},
]
RUN: list[dict[str, Any]] = [
    {
        "Conversation_no": 1,
        "Turn_no": 1,
        "Model_rewrite": QUESTION,
        "Model_passages": {"other:1": 3.0, "bread:2": 2.0, "bread:1": 1.0},
        "Model_answer": "the rice-bread",
    },
    {
        "Conversation_no": 1,
        "Turn_no": 2,
        "Model_rewrite": "How long does bread keep?",
        "Model_passages": {"bread:1": 1.0},
        "Model_answer": "It keeps two days!",
    },
    {"Conversation_no": 2, "Turn_no": 1, "Model_passages": {}},
]
OF_ITSELF = [
    {
        "Conversation_no": row["Conversation_no"],
        "Turn_no": row["Turn_no"],
        "Model_rewrite": row["Truth_rewrite"],
        "Model_passages": dict.fromkeys(row["Truth_passages"], 1.0),
        "Model_answer": row["Truth_answer"],
    }
    for row in TRUTH
]


def scores(folder: Path, run: Any = RUN) -> Scores:
    files = write(folder / "run.json", run), write(folder / "truth.json", TRUTH)
    [found] = evaluate_qrecc([files[0]], files[1])
    return found


def test_rewrites_by_hand(tmp_path: Path) -> None:
    """1_2 has five of the six words of the truth. First turns do not count, and 2_2 has no truth."""
    assert scores(tmp_path).by_turn(REWRITE) == {"1_2": 5 / 6}


def test_rankings_by_hand(tmp_path: Path) -> None:
    """1_1: bread:2 is second. 1_2 has no truth. 2_1 is ranked and empty. 2_2 is not ranked, and does not count."""
    assert scores(tmp_path).by_turn(RR) == {"1_1": 0.5, "2_1": 0.0}
    assert scores(tmp_path).mean(RR) == 0.25


def test_answers_by_hand(tmp_path: Path) -> None:
    """1_1: `ricebread` is neither `rice` nor `bread`, but two words for ROUGE. 1_2: two of four words are the two.

    2_1 has no truth. 2_2: nothing is left of its truth `The.`, and the run has no answer to it; for ROUGE it is a word.
    """
    found = scores(tmp_path)
    assert found.by_turn(EXACT) == {"1_1": 0.0, "1_2": 0.0, "2_2": 1.0}
    assert found.by_turn(F1) == {"1_1": 0.0, "1_2": pytest.approx(2 * 1 * 0.5 / 1.5), "2_2": 1.0}
    assert found.by_turn(ANSWER) == {"1_1": 1.0, "1_2": 1.0, "2_2": 0.0}


BY_HAND = [
    ("The two days", "two   DAYS.", 1, 1, 2 / 3),  # articles, case, punctuation and spaces do not matter for SQuAD
    ("two days", "two keeps", 0, 0.5, 0.5),  # no stemming
    ("two two days", "two days days", 0, 2 / 3, 2 / 3),  # a word counts as often as it stands on both sides
    ("two days", "", 0, 0, 0),
    ("", "two days", 0, 0, 0),
    ("", "An.", 1, 1, 0),  # neither has words
    ("don't", "dont", 1, 1, 0),  # `don` and `t` for ROUGE
    ("theatre", "atre", 0, 0, 0),  # an article is a word
]


def test_an_answer_by_hand() -> None:
    for truth, text, *measures in BY_HAND:
        expected = dict(zip((EXACT, F1, ANSWER), measures, strict=True))
        assert answer_measures(truth, text) == pytest.approx(expected), (truth, text)


@pytest.mark.parametrize(
    ("truth", "run", "said"),
    [
        ("{", RUN, "truth.json: is not JSON"),
        ([], RUN, "truth.json: holds no turn"),
        (RUN, RUN, "truth.json: is not a valid qrecc truth file"),
        (TRUTH[:1] * 2, RUN[:1], "truth.json: turn 1_1: stands 2 times"),
        (
            [{name: value for name, value in TRUTH[0].items() if name != "Truth_answer"}],
            RUN,
            r"\$\[0\]: 'Truth_answer' is a required property",
        ),
        (TRUTH, "{", "run.json: is no run"),
        (TRUTH, TRUTH, "run.json: is a run of no edition that can be recognised"),
        (TRUTH, [{"Conversation_no": 1}], "run.json: is no valid qrecc run .*`Turn_no`"),
        (
            TRUTH,
            {"run_name": "r", "run_type": "automatic", "eval_response": True, "turns": []},
            "run.json: is a run of ikat-2024, not of qrecc\n  `convagent eval",
        ),
        (TRUTH, RUN[:1] * 2, "run.json: turn 1_1: stands 2 times"),
        (TRUTH[:2], RUN, "run.json: has wrong turns: 1 problem\n  turn 2_1: is not in the truth\n  Is it"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, truth: Any, run: Any, said: str) -> None:
    files = write(tmp_path / "run.json", run), write(tmp_path / "truth.json", truth)
    with pytest.raises(InvalidInputError) as caught:
        evaluate_qrecc([files[0]], files[1])
    assert caught.match(f"(?s){said}")


def test_answers_of_an_edition_that_cannot_cite(tmp_path: Path) -> None:
    """Nothing is said of citations, and no texts are asked for."""
    topics = write(tmp_path / "topics.json", [{**row, "Truth_answer": "Rice bread."} for row in QRECC])
    [found] = evaluate_answers([write(tmp_path / "run.json", RUN[:2])], topics)
    assert found.by_turn("ROUGE-1")["1_1"] == pytest.approx(2 * 1 * (2 / 3) / (5 / 3))
    assert found.by_turn("words") == {"1_1": 2.0, "1_2": 4.0}
    assert not any(found.by_turn(measure) for measure in ("supported", "wholly supported", "citations right"))


def test_the_command(tmp_path: Path) -> None:
    """Two runs side by side; a dash for a part that one of them left out; no row for what none of them has."""
    for name, content in (("ours", RUN), ("theirs", OF_ITSELF), ("truth", TRUTH)):
        write(tmp_path / name, content)
    write(tmp_path / "answers", [{"Conversation_no": 1, "Turn_no": 1, "Model_answer": "Rice bread"}])
    result = evaluate("ours", "theirs", cwd=tmp_path)
    assert rows_of(result)[RR][:5] == ["0.250", "1.000", "2", "/", "3"]
    assert "4 turns judged; ours lacks 1" in result.stderr
    assert "SAS and POSSCORE" in result.stderr
    assert result.stderr.count("turns judged") == 1
    assert rows_of(evaluate("answers", "ours", cwd=tmp_path))[RR] == ["-", "0.250", "0", "/", "2", "-"]
    assert RR not in rows_of(evaluate("answers", cwd=tmp_path))
    [as_json] = json.loads(evaluate("answers", "--json", cwd=tmp_path).stdout)
    assert set(as_json["mean"]) == {EXACT, F1, ANSWER}


def rows_of(result: "CompletedProcess[str]") -> dict[str, list[str]]:
    """The columns of a table, by measure."""
    return {line[:18].strip(): line[18:].split() for line in result.stdout.splitlines()}


def evaluate(*arguments: str, cwd: Path) -> "CompletedProcess[str]":
    result = convagent("eval", "qrecc", *arguments, "--truth", "truth", cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result
