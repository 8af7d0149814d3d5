"""Intervals and tests over conversations: cases computed by hand."""

from collections.abc import Sequence

import pytest

from agent.evaluation.scores import bootstrap_interval, correct_by_holm, paired_differences, randomisation_p


def conversations(*values: Sequence[float]) -> dict[str, float]:
    """Values by turn id: a sequence for each conversation."""
    return {f"{topic}-1_{turn}": value for topic, each in enumerate(values) for turn, value in enumerate(each)}


def test_an_interval_by_hand() -> None:
    """Of two conversations, both drawn are the first, or the second, in a quarter of the samples each."""
    found = bootstrap_interval(conversations([0.0, 0.0, 0.0], [1.0]))
    assert (found.mean, found.low, found.high) == (0.25, 0.0, 1.0)
    alone = bootstrap_interval(conversations([0.2, 0.4]))
    assert alone.mean == alone.low == alone.high == pytest.approx(0.3)
    with pytest.raises(ValueError, match="no value"):
        bootstrap_interval({})


def test_turns_that_hang_together_are_less_sure_than_as_many_on_their_own() -> None:
    together = bootstrap_interval(conversations(*([float(topic % 2)] * 10 for topic in range(6))))
    apart = bootstrap_interval(conversations(*([float(turn % 2)] for turn in range(60))))
    assert together.mean == apart.mean == 0.5
    assert together.high - together.low > 2 * (apart.high - apart.low)


BY_HAND: list[tuple[list[list[float]], float]] = [
    ([[1.0], [1.0], [1.0]], 2 / 8),  # all sides changed, or none
    ([[1.0], [1.0], [-1.0]], 1.0),  # every sum is at least as large
    ([[0.5, 0.5], [2.0], [-1.0, 1.0]], 2 / 4),  # the third conversation does not differ
    ([[0.0], [0.0]], 1.0),
    ([], 1.0),
]


def test_p_values_by_hand() -> None:
    for values, p in BY_HAND:
        assert randomisation_p(conversations(*values)) == p


def test_turns_that_one_run_lacks_are_not_compared() -> None:
    assert paired_differences({"a_1": 1.0, "a_2": 0.5}, {"a_2": 0.25, "a_3": 1.0}) == {"a_2": 0.25}


def test_holm_by_hand() -> None:
    # 3 x .01; 2 x .03; 1 x .04 is below the one before it
    assert correct_by_holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert correct_by_holm([0.5, 0.9]) == pytest.approx((1.0, 1.0))
    assert (correct_by_holm([0.02]), correct_by_holm([])) == ((0.02,), ())
