"""`eval conversation`: repeats and depth by hand-computed cases."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.evaluation.conversation import REPEATS, SEARCH, Said, measure_conversations, measure_repeats
from cli import app
from schemas.errors import InvalidInputError
from schemas.records import Topic, Topics, Turn
from tests.conftest import EXAMPLES

SENTENCES, SOURCES, STATEMENTS = REPEATS
BEFORE = [Said("1_1", "Rice bread keeps for two days. It holds no gluten.", ("a:1", "b:1"), ("3",)), Said("1_2", "No.")]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (("Rice bread keeps for two days. Freeze it.", ("a:1",), ("3",)), {SENTENCES: 0.5, SOURCES: 1, STATEMENTS: 1}),
        (("RICE BREAD keeps, for two days!", ("c:1", "b:1"), ("1",)), {SENTENCES: 1, SOURCES: 0.5, STATEMENTS: 0}),
        (("Ferns want water.", ("c:1",)), {SENTENCES: 0.0, SOURCES: 0.0}),
        (("",), {}),
    ],
)
def test_what_earlier_answers_had_is_a_repeat(said: tuple[str], expected: dict[str, float]) -> None:
    assert measure_repeats(Said("1_3", *said), BEFORE) == expected


def test_search_falls_with_depth() -> None:
    turns = {"1": ("1_1", "1_2", "1_3"), "2": ("2_1", "2_2")}
    topics = Topics(
        "", tuple(Topic(id, (), tuple(Turn(each, "and?") for each in ids)) for id, ids in turns.items()), {}
    )
    values = {"1_1": 1.0, "1_2": 0.3, "1_3": 0.5, "2_1": 0.8, "2_2": 0.6}
    measured = measure_conversations("run", topics, [Said(turn_id, "Yes.") for turn_id in values], values)
    assert [measured.mean(f"{SEARCH}, turn {depth}") for depth in (1, 2, 3)] == pytest.approx([0.9, 0.45, 0.5])
    assert measured.by_turn(SENTENCES) == {"1_2": 1.0, "1_3": 1.0, "2_2": 1.0}
    with pytest.raises(InvalidInputError, match="has none of the turns"):
        measure_conversations("run", topics, [Said("9_9", "Yes.")], {})


def test_a_run_is_measured(example_runs: Path) -> None:
    """Beside the topics' own replies, as JSON and as a table with intervals."""
    command = ["eval", "conversation", str(example_runs / "automatic.json"), "-t", str(EXAMPLES / "topics.json")]
    ours, canonical = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert {f"{SEARCH}, turn 1", *REPEATS} <= set(ours["mean"])
    assert set(REPEATS) <= set(canonical["mean"])
    assert "nDCG@5, turn 1" in CliRunner().invoke(app, command).stdout
