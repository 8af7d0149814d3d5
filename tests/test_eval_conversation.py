"""`eval conversation`: repeats, choices and depth by hand-computed cases, and a question asked again at the end."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.evaluation.asked_again import SAME_SOURCES, SAME_TOP, SAME_WORDS, add_question, compare_answers
from agent.evaluation.conversation import (
    CHOSEN_OFTEN,
    CONCENTRATION,
    LATER,
    REPEATS,
    SEARCH,
    Said,
    measure_choices,
    measure_conversations,
    measure_repeats,
)
from agent.evaluation.scores import Scores
from cli import app
from indexes.passage_index import PassageIndex
from schemas.records import Hit, Message, Query, Response, Sentence, Topic, Topics, Turn, TurnResult
from tests.conftest import EXAMPLES

SENTENCES, PHRASES, SOURCES = REPEATS
BEFORE = Said("1_1", "Rice bread keeps for two days. It holds no gluten.", ("a:1", "b:1"))


@pytest.mark.parametrize(
    ("text", "sources", "expected"),
    [
        # of two sentences one; of the phrases of nine words (six) three: "rice bread keeps for two days" has three
        ("Rice bread keeps for two days. Freeze it then.", ("a:1",), {SENTENCES: 0.5, PHRASES: 0.5, SOURCES: 1.0}),
        ("RICE BREAD keeps, for two days!", ("c:1", "b:1"), {SENTENCES: 1.0, PHRASES: 1.0, SOURCES: 0.5}),
        ("Ferns want water.", ("c:1",), {SENTENCES: 0.0, SOURCES: 0.0}),  # too short for a phrase
        ("", (), {}),
    ],
)
def test_what_earlier_answers_had_is_a_repeat(text: str, sources: tuple[str, ...], expected: dict[str, float]) -> None:
    assert measure_repeats(Said("1_3", text, sources), [BEFORE, Said("1_2", "Ferns.")]) == expected


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ([["1"], ["1"], ["1"]], {CHOSEN_OFTEN: 1.0, CONCENTRATION: 1.0}),
        ([["1"], ["2"], ["3"]], {CHOSEN_OFTEN: 0.0, CONCENTRATION: 0.0}),
        # pairs of choices of different turns: 2 + 2 + 1; the same statement in one of each: three of "1"
        ([["1", "2"], ["1"], ["1"]], {CHOSEN_OFTEN: 0.5, CONCENTRATION: 3 / 5}),
        ([["1"], [], []], {CHOSEN_OFTEN: 0.0}),
        ([[], []], {}),
    ],
)
def test_choices_gather_on_a_few_statements(chosen: list[list[str]], expected: dict[str, float]) -> None:
    assert measure_choices(chosen) == pytest.approx(expected)


def make_topics(*lengths: int) -> Topics:
    topics = (
        Topic(f"{number}", (), tuple(Turn(f"{number}_{n}", "and?") for n in range(1, length + 1)))
        for number, length in enumerate(lengths, start=1)
    )
    return Topics("ikat-2024", tuple(topics), {})


def test_search_falls_with_depth() -> None:
    topics = make_topics(3, 2)
    values = {"1_1": 1.0, "1_2": 0.3, "1_3": 0.5, "2_1": 0.8, "2_2": 0.6}
    search = Scores("run", {turn_id: {SEARCH: value} for turn_id, value in values.items()}, 0)
    measured = measure_conversations("run", topics, [Said(turn_id, "Yes.") for turn_id in values], search)
    assert {depth: found.interval.mean for depth, found in measured.depths.items()} == pytest.approx(
        {"1": 0.9, "2": 0.45, "3": 0.5}
    )
    assert (measured.depths["1"].interval.low, measured.depths["1"].interval.high) == (0.8, 1.0)
    # -.5 in the first conversation, whose second turn is in neither half, and -.2 in the second
    assert measured.means[LATER].interval.mean == pytest.approx(-0.35)
    assert measured.means[LATER].count == 2


def make_result(text: str, source: str, *hits: str) -> TurnResult:
    response = Response((Sentence(text, (source,) if source else ()),))
    return TurnResult("1_1", Query(""), (), tuple(Hit(id, 1.0) for id in hits), (), (response,))


def test_two_answers_to_one_question_are_compared() -> None:
    pair = make_result("It keeps two days.", "a", "a", "b"), make_result("It keeps a week.", "b", "b", "c")
    silent = make_result("I found no answer.", ""), make_result("I found no answer.", "")
    found = compare_answers({"1_": pair, "2_": silent})
    assert found[SAME_SOURCES] == {"1_": 0.0}
    assert found[SAME_WORDS] == {"1_": 0.5, "2_": 1.0}
    assert found[SAME_TOP] == {"1_": 0.5}


def test_the_question_comes_after_the_whole_conversation() -> None:
    topic = make_topics(2).topics[0]
    replies = {"1_1": "First.", "1_2": "Second."}
    [probe] = add_question(topic, replies).turns
    assert probe.id == "1_again"
    assert [message.text for message in probe.history or ()] == ["and?", "First.", "and?", "Second."]
    given = Turn("1_1", "what?", (Message("user", "a"), Message("assistant", "b")))
    [probe] = add_question(Topic("1", (), (given,)), replies).turns
    assert [message.text for message in probe.history or ()] == ["a", "b", "what?", "First."]


def test_a_run_is_measured_and_asked_again(example_index: PassageIndex, tmp_path: Path) -> None:
    """What was asked again is kept, and only the system that made the run is asked."""
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps(json.loads((EXAMPLES / "topics.json").read_text())[:2]))
    run, index = tmp_path / "run.json", str(example_index.directory)
    how = ["-i", index, "-m", "none", "--embedder", "none"]
    assert CliRunner().invoke(app, ["answer", str(topics), *how, "-o", str(run)]).exit_code == 0
    command = ["eval", "conversation", str(run), "-t", str(topics), "--json"]
    done = CliRunner().invoke(app, [*command, "--ask-again", *how])
    assert done.exit_code == 0, done.output
    ours, canonical = json.loads(done.stdout)
    assert ours["means"][SAME_SOURCES]["count"] == 2
    assert ours["depths"]["1"]["count"] == 2
    assert set(REPEATS) <= set(ours["means"])
    assert set(REPEATS) <= set(canonical["means"])
    kept = (tmp_path / "run.again.trace.jsonl").read_bytes()
    again = CliRunner().invoke(app, [*command, "--ask-again", *how])
    assert json.loads(again.stdout) == json.loads(done.stdout)
    assert (tmp_path / "run.again.trace.jsonl").read_bytes() == kept  # what was asked is not asked once more
    other = CliRunner().invoke(app, [*command, "--ask-again", "-i", index, "-m", "none"])
    assert other.exit_code == 2, other.output
    printed = CliRunner().invoke(app, [*command[:-1]])
    assert "nDCG@5, turn 1" in printed.stdout
