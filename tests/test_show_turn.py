"""`convagent show --turn`: one turn of several runs, side by side where there is room."""

import re
from pathlib import Path

import pytest

from tests import within
from tests.conftest import EXAMPLES

TOPICS = EXAMPLES / "topics.json"


def show(*arguments: str | Path, width: int = 150) -> str:
    """What is printed on a terminal of that width."""
    ended = within.convagent("show", *arguments, COLUMNS=str(width))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def traces(example_runs: Path) -> tuple[Path, Path]:
    return example_runs / "automatic.trace.jsonl", example_runs / "manual.trace.jsonl"


def test_two_runs_side_by_side(traces: tuple[Path, Path]) -> None:
    shown = show(*traces, "--turn", "0_1")
    assert re.search(r"^ +automatic +manual *$", shown, re.MULTILINE)
    assert re.search(r"^ *1 +\S+:\d.* {5}\S+:\d", shown, re.MULTILINE)
    assert [shown.count(word) for word in ("searched for", "answer", "whole turn", "canonical")] == [1, 1, 1, 0]
    assert re.search(r"\[1\] .*\[1\] ", shown)


def test_labels_show_what_is_right(example_runs: Path) -> None:
    """The runs themselves will do: their traces stand beside them."""
    shown = show(example_runs / "automatic.json", example_runs / "manual.json", "--turn", "0_1", "-t", TOPICS)
    assert re.search(r"^ *canonical +Use equal weights of buckwheat", shown, re.MULTILINE)
    assert re.search(r"knowing .*(✓ right|○ missed) .*✓ right +I have coeliac disease", shown)
    assert re.search(r"^ *\d+ .*✓ bread-01:1", shown, re.MULTILINE)


def test_narrow_terminals_have_one_run_after_the_other(traces: tuple[Path, Path]) -> None:
    shown = show(*traces, "--turn", "0_1", width=70)
    assert re.findall(r"^ +(automatic|manual) *$", shown, re.MULTILINE) == ["automatic", "manual"]
    assert shown.count("searched for") == 2
    assert max(map(len, shown.splitlines())) <= 70


def test_what_cannot_be_shown_is_said(traces: tuple[Path, Path]) -> None:
    unknown = within.convagent("show", *traces, "--turn", "7_7")
    assert unknown.returncode == 5
    assert "there is no turn '7_7' (there are: 0_1, 0_2, " in unknown.stderr
    several = within.convagent("show", *traces)
    assert several.returncode == 2
    assert "Give --turn too, such as --turn 9-1_3" in several.stderr
