"""The simulation and the power law behind `docs/scale.md`, against what is known by formula."""

import math
import re
from statistics import mean

import pytest

pytest.importorskip("simpy", reason="simpy is not installed (extra dev)")

from benchmarks import index, scale
from benchmarks.turn_simulation import Conversation, Deployment, ServiceTime, simulate
from tests.conftest import ROOT


def alone(*seconds: float) -> Conversation:
    """Turns that ask no server."""
    return tuple(ServiceTime(each) for each in seconds)


def remote(*seconds: float) -> Conversation:
    """Turns that only ask a server."""
    return tuple(ServiceTime(0.0, (each,)) for each in seconds)


@pytest.mark.parametrize(
    ("conversations", "deployment", "makespan"),
    [
        ([alone(3, 1), alone(2)], Deployment(1), 6),
        ([alone(3), alone(1), alone(1)], Deployment(2), 3),
        ([alone(1, 1, 1, 1), alone(1)], Deployment(8), 4),  # turns of a conversation wait for each other
        ([remote(2, 2), remote(2, 2), remote(2)], Deployment(3), 4),
        ([remote(2, 2), remote(2, 2), remote(2)], Deployment(3, concurrency=1), 10),
        ([remote(2, 2), remote(2, 2), remote(2, 2)], Deployment(3, concurrency=2), 6),
        ([remote(10), remote(10)], Deployment(2, batch_growth=0.5), 15),
    ],
)
def test_runs_that_can_be_done_by_hand(
    conversations: list[Conversation], deployment: Deployment, makespan: float
) -> None:
    outcome = simulate(conversations, deployment)
    assert outcome.makespan == pytest.approx(makespan)
    assert (len(outcome.turns), outcome.failures, outcome.lost) == (sum(map(len, conversations)), 0, 0)


def test_the_cost_of_failures() -> None:
    """A turn of s seconds fails e^(s/m) - 1 times in the mean, and takes (m + restart)(e^(s/m) - 1) seconds."""
    seconds, between, restart, turns = 100.0, 80.0, 30.0, 4000
    deployment = Deployment(1, failure_seconds=between, restart_seconds=restart)
    outcome = simulate([alone(*[seconds] * turns)], deployment, seed=1)
    failures = math.expm1(seconds / between)
    assert mean(outcome.turns) == pytest.approx((between + restart) * failures, rel=0.05)
    assert outcome.lost / turns == pytest.approx(between * failures - seconds, rel=0.05)
    assert outcome.makespan == pytest.approx(sum(outcome.turns))


def test_the_commands_of_the_plan_can_be_parsed() -> None:
    """Those of convagent itself are checked with the other pages (`tests/test_docs.py`)."""
    text = (ROOT / "docs" / "scale.md").read_text()
    shown = re.findall(r"^\$ .*python benchmarks/(\w+)\.py (.+)$", text, re.MULTILINE)
    assert {name for name, _ in shown} == {"scale", "index"}
    for name, arguments in shown:
        {"scale": scale, "index": index}[name].build_parser().parse_args(arguments.split())
