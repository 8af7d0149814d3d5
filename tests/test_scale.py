"""The simulation and the power law behind `docs/scale.md`, against what is known by formula."""

import math
import re
from statistics import mean

import numpy as np
import pytest

pytest.importorskip("simpy", reason="simpy is not installed (extra dev)")

from benchmarks import index, scale
from benchmarks.growth import fit_power_law
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


def test_waiting_for_a_server() -> None:
    """The machine-repairman model: n workers, each thinks for z and is served for s seconds, both exponential."""
    workers, think, service = 4, 2.0, 1.0
    drawn = np.random.default_rng(1)
    turns = [ServiceTime(drawn.exponential(think), (drawn.exponential(service),)) for _ in range(10_000)]
    conversations = [tuple(turns[start::workers]) for start in range(workers)]
    outcome = simulate(conversations, Deployment(workers, concurrency=1))
    idle = 1 / sum(math.perm(workers, k) * (service / think) ** k for k in range(workers + 1))
    assert outcome.turns_an_hour / 3600 == pytest.approx((1 - idle) / service, rel=0.03)


def test_a_power_law_is_found() -> None:
    sizes = [10, 100, 1000, 3000]
    law = fit_power_law(sizes, [2 * size**0.75 for size in sizes])
    assert (law.factor, law.exponent, law.margin) == pytest.approx((2, 0.75, 0), abs=1e-6)
    assert law.predict_interval(1e6) == pytest.approx((law.predict(1e6),) * 2)


def test_the_commands_of_the_plan_can_be_parsed() -> None:
    """Those of convagent itself are checked with the other pages (`tests/test_docs.py`)."""
    text = (ROOT / "docs" / "scale.md").read_text()
    shown = re.findall(r"^\$ .*python benchmarks/(\w+)\.py (.+)$", text, re.MULTILINE)
    assert {name for name, _ in shown} == {"scale", "index"}
    for name, arguments in shown:
        {"scale": scale, "index": index}[name].build_parser().parse_args(arguments.split())
