"""Workers that an actor is made of in tests: they die, or are made of something else. Other processes import this."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agent.runs.backends.protocol import TopicTask
from agent.runs.backends.ray_worker import RayWorker
from agent.runs.trace import TraceLine
from agent.runs.worker import WorkerDescription


def prepare_losses(folder: Path, turn_id: str, times: int) -> None:
    """Have so many workers end before they answer a turn of the topics file in this folder."""
    for number in range(times):
        (folder / f"lost-{turn_id}-{number}").touch()


def count_losses(folder: Path, turn_id: str) -> int:
    """How many are still to come."""
    return len(list(folder.glob(f"lost-{turn_id}-*")))


class MortalWorker(RayWorker):
    """Ends as by `kill -9` before a turn for which that was prepared."""

    def answer(self, task: TopicTask) -> Iterator[TraceLine]:
        lines = super().answer(task)
        for turn in task.topic.turns:
            if turn.id not in task.replies:
                for prepared in self._recipe.topics.parent.glob(f"lost-{turn.id}-*"):
                    prepared.unlink()
                    os.kill(os.getpid(), signal.SIGKILL)
                yield next(lines)


class DyingWorker(RayWorker):
    """Ends while it is being opened."""

    def open(self) -> tuple[str, WorkerDescription]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("is dead")


class OldWorker(RayWorker):
    """On a node with another state of the program."""

    def open(self) -> tuple[str, WorkerDescription]:
        _, made_of = super().open()
        return "node-of-old", replace(made_of, sources={**made_of.sources, "agent": "0123"})


class ForeignWorker(RayWorker):
    """On a node with a processor of its own."""

    def open(self) -> tuple[str, WorkerDescription]:
        _, made_of = super().open()
        return f"node{os.getpid()}", replace(made_of, processor=f"processor {os.getpid()}")
