"""`eval conversation`: repeats, choices and depth by hand-computed cases."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

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
from schemas.records import Topic, Topics, Turn
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
    depths = [measured.means[f"{SEARCH}, turn {depth}"].interval for depth in (1, 2, 3)]
    assert [depth.mean for depth in depths] == pytest.approx([0.9, 0.45, 0.5])
    assert (depths[0].low, depths[0].high) == (0.8, 1.0)
    # -.5 in the first conversation, whose second turn is in neither half, and -.2 in the second
    assert measured.means[LATER].interval.mean == pytest.approx(-0.35)
    assert measured.means[LATER].count == 2


def test_a_run_is_measured(example_runs: Path) -> None:
    """Beside the topics' own replies, as JSON and as a table."""
    command = ["eval", "conversation", str(example_runs / "automatic.json"), "-t", str(EXAMPLES / "topics.json")]
    ours, canonical = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert ours["means"]["nDCG@5, turn 1"]["count"] == 3
    assert set(REPEATS) <= set(ours["means"])
    assert set(REPEATS) <= set(canonical["means"])
    assert "nDCG@5, turn 1" in CliRunner().invoke(app, command).stdout
