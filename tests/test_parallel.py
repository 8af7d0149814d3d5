"""Several topics at a time."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent.runs.worker import answer_in_threads


class CountingWorker:
    """Makes a thousand lines of each task, but breaks at the second one."""

    def __init__(self, begun: list[int]) -> None:
        self.begun = begun

    def answer(self, task: int) -> Iterator[int]:
        self.begun.append(task)
        for n in range(1000):
            if task == 1 and n == 3:
                raise ValueError("no more")
            time.sleep(0.001)
            yield n


@pytest.mark.parametrize("count", [1, 3])
def test_an_error_is_raised_and_the_others_stop(count: int) -> None:
    begun: list[int] = []
    workers: Any = [CountingWorker(begun)] * count
    tasks: Any = range(50)
    with pytest.raises(ValueError, match="no more"):
        list(answer_in_threads(workers, tasks))
    assert len(begun) <= 6
    assert threading.active_count() < 10
