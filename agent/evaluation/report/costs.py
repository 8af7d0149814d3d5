"""What a turn costs on average, by the run's trace."""

from dataclasses import dataclass
from statistics import mean

from agent.evaluation.report.request import OpenedRun


@dataclass(frozen=True, slots=True)
class AverageCost:
    """Means over the turns of a trace."""

    tokens_read: float
    tokens_written: float
    seconds: float


def average_costs(run: OpenedRun) -> AverageCost | None:
    """The mean of all turns; None for a run without a trace."""
    turns = run.traced.values()
    if not turns:
        return None
    return AverageCost(
        mean(sum(step.tokens_read for step in turn.steps) for turn in turns),
        mean(sum(step.tokens_written for step in turn.steps) for turn in turns),
        mean(turn.seconds for turn in turns),
    )
