"""Several topics at a time."""

import threading
import time
from collections.abc import Iterator

import pytest

from agent.runs.backends.local import run_in_workers


@pytest.mark.parametrize("workers", [["a"], ["a", "b", "c"]])
def test_an_error_is_raised_and_the_others_stop(workers: list[str]) -> None:
    begun: list[int] = []

    def work(_worker: str, part: int) -> Iterator[int]:
        begun.append(part)
        for n in range(1000):
            if part == 1 and n == 3:
                raise ValueError("no more")
            time.sleep(0.001)
            yield n

    with pytest.raises(ValueError, match="no more"):
        list(run_in_workers(work, workers, range(50)))
    assert len(begun) <= 6
    assert threading.active_count() < 10
