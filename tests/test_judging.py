"""Answers judged by nuggets: what is asked, kept and scored."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from agent.evaluation.nuggets import VERDICTS, JudgedAnswer, Nugget, decode_nuggets, read_nuggets, score_nuggets
from agent.tracks.lenient_reading import Oddities
from cli import app
from schemas.errors import InvalidInputError
from tests.conftest import needs_embedder, needs_model
from tests.stand_in import StandIn, said, standing_in
from tests.test_export import AUTOJUDGE, in_python, needs
from tests.test_topics import write

ANSWERS = {
    "1_1": "Rice bread keeps for two days in a tin.",
    "1_2": "Two days; frozen, a month.",
    "1_3": "",
}
NUGGETS = """\
{"query": "How long does rice bread keep?", "qid": "1_1", "nuggets": [\
{"text": "Rice bread keeps for two days", "importance": "vital"}, {"text": "It keeps in a tin", "importance": "okay"}]}
{"query": "And frozen?", "qid": "1_2", "nuggets": [\
{"text": "Frozen rice bread keeps for a month", "importance": "vital"}, \
{"text": "It is thawed in an oven", "importance": "okay"}, {"text": "It turns dry", "importance": "okay"}]}
{"query": "Is rye free of gluten?", "qid": "1_3", "nuggets": [{"text": "Rye has gluten", "importance": "vital"}]}
"""
LABELS = [["support", "support"], ["partial_support", "not_support", "not_support"]]
SCRIPT = {"ask": {"assign": [{"labels": labels} for labels in LABELS]}}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a run, its nuggets, and a script for a judge."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "ours.json", ANSWERS)
    write(tmp_path / "nuggets.jsonl", NUGGETS)
    write(tmp_path / "judge.json", json.dumps(SCRIPT))
    return tmp_path


def write_run(path: Path, answers: dict[str, str]) -> Path:
    """A run in the form of SCAI-QReCC."""
    turns = ((*map(int, id.split("_")), text) for id, text in answers.items())
    return write(path, [{"Conversation_no": c, "Turn_no": t, "Model_answer": text} for c, t, text in turns])


def read_assignments(path: Path) -> tuple[JudgedAnswer, ...]:
    return decode_nuggets(path.read_bytes(), Oddities())


def evaluate(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["eval", *arguments])
    assert result.exit_code == code, result.output
    return result


def means(*arguments: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(evaluate(*arguments, "--json").stdout.splitlines()[0])[0]["mean"]
    return found


# Scores


def test_scores_by_hand() -> None:
    vital, okay = Nugget("a", "vital", "support"), Nugget("b", "okay", "partial_support")
    assert score_nuggets([vital, okay, replace(okay, verdict="not_support")]) == {
        "vital": 1.0,
        "strict vital": 1.0,
        "weighted": 1.25 / 2,
        "strict weighted": 1 / 2,
        "all": 1.5 / 3,
        "strict all": 1 / 3,
    }
    assert score_nuggets([Nugget("a", None, "support"), Nugget("b")]) == {"all": 0.5, "strict all": 0.5}


@needs["nuggetizer"]
def test_scores_are_the_nuggetizers_to_the_digit() -> None:
    from nuggetizer.core.metrics import calculate_nugget_scores

    kinds = list(product(("vital", "okay"), ("support", "partial_support", "not_support", None)))
    checked = 0
    for size in range(1, 5):
        for nuggets in product(kinds, repeat=size):
            theirs = calculate_nugget_scores("1", [{"importance": i, "assignment": a} for i, a in nuggets])
            ours = score_nuggets([Nugget("a", *labels) for labels in nuggets])  # type: ignore[arg-type]
            assert ours["strict vital"] == theirs.strict_vital_score
            assert ours["strict all"] == theirs.strict_all_score
            assert (ours["vital"], ours["all"]) == (theirs.vital_score, theirs.all_score)
            checked += 1
    assert checked == 8 + 8**2 + 8**3 + 8**4


# Files


def test_nuggets_of_ikat_are_read(tmp_path: Path) -> None:
    for text in (
        '{"1_1": {"1": "Two days", "2": "In a tin"}}',
        '{"1_1": {"1": {"text": "Two days", "passage": "p"}, "2": {"text": "In a tin"}}}',
        '{"1_1": ["Two days", {"text": "In a tin"}]}',
    ):
        found = read_nuggets(write(tmp_path / "n.json", text))
        assert found == (JudgedAnswer("1_1", (Nugget("Two days"), Nugget("In a tin"))),)


NO_NUGGETS = [
    ("[1]", "is no line of nuggets"),
    ('{"1_1": 7}', "is no list of nuggets"),
    ('{"1_1": {"1": {"nugget": "a"}}}', "has no text"),
    ("", "holds no nuggets"),
    ('{"qid": "1", "nuggets": [{"text": "a", "importance": "high"}]}', "Invalid enum value 'high'"),
    ('{"qid": "1", "nuggets": []}\n{"qid": "1", "nuggets": []}', "for one turn twice"),
]


def test_what_is_no_file_of_nuggets_is_an_error(tmp_path: Path) -> None:
    for text, what in NO_NUGGETS:
        with pytest.raises(InvalidInputError, match=what):
            read_nuggets(write(tmp_path / "n.json", text))


@needs["autojudge_base"]
def test_auto_judge_takes_assignments(place: Path) -> None:
    """By its own loader of the Nuggetizer's form."""
    evaluate("nuggets", "ours.json", "--nuggets", "nuggets.jsonl", "--judge", "scripted:judge.json")
    code = """
from autojudge_base.nugget_data.nuggetizer import load_nuggetizer_banks_from_file
assigned = load_nuggetizer_banks_from_file(Path(sys.argv[1])).banks
print(json.dumps({id: [[n.importance, n.assignment] for n in bank.nuggets] for id, bank in assigned.items()}))
"""
    assigned = in_python(AUTOJUDGE + code, place / "ours.nuggets.jsonl")
    assert assigned["1_1"] == [["vital", "support"], ["okay", "support"]]


# Stories


def test_a_judge_is_asked_and_its_verdicts_are_kept(place: Path) -> None:
    command = ("nuggets", "ours.json", "--nuggets", "nuggets.jsonl")
    found = means(*command, "--judge", "scripted:judge.json")
    assert found["vital"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert found["strict all"] == pytest.approx((1 + 0 + 0) / 3)
    kept = place / "ours.nuggets.jsonl"
    assert [answer.text for answer in read_assignments(kept)] == list(ANSWERS.values())
    assert [nugget.verdict for nugget in read_assignments(kept)[2].nuggets] == ["not_support"]  # nobody was asked
    again = evaluate(*command, "--judge", "scripted:judge.json", code=2)
    assert "exists already" in again.stderr
    assert means(*command, "--judge", str(kept)) == found


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (("--judge", "none"), 2, "a judge has to be a model"),
        (("--judge", "nonsense"), 2, "unknown model 'nonsense'"),
        (("--judge", "nuggets.jsonl"), 5, "has no verdicts on these runs"),
        (("--judge", "other.jsonl"), 5, "is about another answer than the one of ours.json"),
        (("--judge", "changed.jsonl"), 5, "judges by other nuggets"),
        (("ours.json", "--judge", "scripted:judge.json"), 2, "two runs are called ours.json"),
    ],
)
def test_what_cannot_be_judged_is_said(arguments: tuple[str, ...], code: int, what: str, place: Path) -> None:
    line = {"query": "", "qid": "1_1", "run_id": "ours", "nuggets": [{"text": "Rice", "assignment": "support"}]}
    write(place / "changed.jsonl", json.dumps(line))
    write(place / "other.jsonl", json.dumps(line | {"answer_text": "Nine days."}))
    result = evaluate("nuggets", "ours.json", "--nuggets", "nuggets.jsonl", *arguments, code=code)
    assert what in result.stderr
    assert not list(place.glob("ours.nuggets*"))  # before anybody is asked


# A server


@pytest.fixture
def server(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CONVAGENT_CACHE", str(place / "cache"))
    with standing_in() as address:
        yield address


def reply(labels: list[Any]) -> tuple[int, Any]:
    return 200, said(json.dumps({"labels": labels}))


def test_a_server_is_asked_for_as_many_verdicts_as_there_are_nuggets(server: str, place: Path) -> None:
    StandIn.replies = [reply(labels) for labels in LABELS]
    found = means("nuggets", "ours.json", "--nuggets", "nuggets.jsonl", "--judge", server)
    assert found["vital"] == pytest.approx(0.5)
    first, second = StandIn.asked
    asked = first["messages"][-1]["content"]
    assert "This was asked: How long does rice bread keep?" in asked
    assert "> Rice bread keeps for two days in a tin." in asked
    assert "1. Rice bread keeps for two days\n2. It keeps in a tin" in asked
    labels = [body["response_format"]["json_schema"]["schema"]["properties"]["labels"] for body in (first, second)]
    assert [(label["minItems"], label["maxItems"]) for label in labels] == [(2, 2), (3, 3)]
    StandIn.asked.clear()
    evaluate("nuggets", "ours.json", "--nuggets", "nuggets.jsonl", "--judge", server, "--overwrite")
    assert StandIn.asked == []  # known from before


def test_verdicts_that_cannot_be_had_count_as_none(server: str, place: Path) -> None:
    StandIn.replies = [reply(LABELS[0]), *[reply(["perhaps"])] * 3]
    result = evaluate("nuggets", "ours.json", "--nuggets", "nuggets.jsonl", "--judge", server)
    assert "without 3 verdicts, which count as not in the answer" in result.stderr
    kept = read_assignments(place / "ours.nuggets.jsonl")
    assert [nugget.verdict for nugget in kept[1].nuggets] == [None] * 3


# The bundled models


@needs_embedder
def test_minilm_is_a_rough_proxy_and_says_so(place: Path) -> None:
    result = evaluate("nuggets", "ours.json", "--nuggets", "nuggets.jsonl", "--judge", "minilm")
    assert "its verdicts are a rough proxy" in result.stderr
    first, _, last = read_assignments(place / "ours.nuggets.jsonl")
    assert first.nuggets[0].verdict == "support"
    assert last.nuggets[0].verdict == "not_support"


@needs_model
def test_a_small_model_gives_verdicts_and_they_are_called_rough(place: Path) -> None:
    result = evaluate("nuggets", "ours.json", "--nuggets", "nuggets.jsonl", "--judge", "smollm2")
    assert "guesses more than it judges" in result.stderr
    judged = read_assignments(place / "ours.nuggets.jsonl")
    assert [nugget.verdict in VERDICTS for answer in judged for nugget in answer.nuggets] == [True] * 6
