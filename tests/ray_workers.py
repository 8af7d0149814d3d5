"""Workers that an actor is made of in tests: they die, or are made of something else. Other processes import this."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.runs.ray import RayWorker, find_next_turn
from agent.runs.trace import WorkerDescription
from agent.runs.worker import TopicTask


def prepare_losses(folder: Path, task: object, times: int) -> None:
    """Have so many workers end before they do a task; the folder is that of the topics file or the index."""
    for number in range(times):
        (folder / f"lost-{task}-{number}").touch()


def _end_if_prepared(folder: Path, task: object) -> None:
    for prepared in folder.glob(f"lost-{task}-*"):
        prepared.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class MortalWorker(RayWorker):
    """Ends as by `kill -9` before a turn for which that was prepared."""

    def answer(self, task: TopicTask) -> Any:
        turn = find_next_turn(task)
        _end_if_prepared(self._topics.parent, turn and turn.id)
        return super().answer(task)


class DyingWorker(RayWorker):
    """Ends while it is being opened."""

    def open(self) -> tuple[str, WorkerDescription]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("is dead")


class OldWorker(RayWorker):
    """On a node with another state of the program."""

    def open(self) -> tuple[str, WorkerDescription]:
        _, made_of = super().open()
        return "node-of-old", replace(made_of, source_code="0123")
