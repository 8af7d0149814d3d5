"""Workers as threads of this process: each answers one topic at a time, so what comes of it is always the same."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TypeVar

from agent.models.cancellation import ConcurrencyLimit
from agent.models.scripted import ScriptedModel
from agent.runs.backends.protocol import TopicTask, Workforce
from agent.runs.trace import TraceLine, WorkerDescription
from agent.runs.worker import Worker, describe_worker

AnyWorker = TypeVar("AnyWorker")
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """Opened workers over the same evidence."""

    workers: Sequence[Worker]
    description: WorkerDescription
    _busy: set[int] = field(default_factory=set)

    @property
    def in_flight(self) -> int:
        return len(self._busy)

    def continue_script(self, lines: Iterable[TraceLine]) -> None:
        for worker in self.workers:
            if isinstance(worker.llm, ScriptedModel):
                worker.llm.go_on_after(call for line in lines for call in line.calls)

    def answer(self, tasks: Sequence[TopicTask]) -> Iterator[TraceLine]:
        return run_in_workers(self._answer_topic, self.workers, tasks)

    def _answer_topic(self, worker: Worker, task: TopicTask) -> Iterator[TraceLine]:
        self._busy.add(id(worker))
        try:
            yield from worker.answer(task.topic, task.given, task.replies)
        finally:
            self._busy.discard(id(worker))


@contextmanager
def open_local(workforce: Workforce) -> Iterator[LocalBackend]:
    """Load the models of every worker. Raises what `WorkerSpecification.open` does."""
    limit = ConcurrencyLimit(workforce.concurrency)
    workers = [workforce.specification.open(workforce.evidence, limit) for _ in range(workforce.count)]
    yield LocalBackend(workers, describe_worker(workers[0], workforce.evidence))


def run_in_workers(
    work: Callable[[AnyWorker, Task], Iterator[Result]], workers: Sequence[AnyWorker], parts: Iterable[Task]
) -> Iterator[Result]:
    """All that `work` yields for each part, as it comes; with one worker in the order of the parts.

    What one of them raises is raised here. Then, and when this is broken off, the others end with what they have in
    hand.
    """
    if len(workers) == 1:
        for part in parts:
            yield from work(workers[0], part)
        return
    ended = threading.Event()
    free: SimpleQueue[AnyWorker] = SimpleQueue()
    made: SimpleQueue[tuple[Result] | BaseException | None] = SimpleQueue()  # None: a part is done

    def do(part: Task) -> None:
        worker = free.get()
        try:
            for one in () if ended.is_set() else work(worker, part):
                made.put((one,))
                if ended.is_set():
                    break
            made.put(None)
        except BaseException as error:  # raised again by whoever reads
            made.put(error)
        finally:
            free.put(worker)

    for worker in workers:
        free.put(worker)
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            left = len([pool.submit(do, part) for part in parts])
            while left:
                match made.get():
                    case None:
                        left -= 1
                    case BaseException() as error:
                        raise error
                    case (one,):
                        yield one
        finally:
            ended.set()
