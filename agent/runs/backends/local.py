"""What a backend does, and the one of this process: each thread answers one topic at a time."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from agent.models.scripted import ScriptedModel
from agent.runs.evidence import Evidence
from agent.runs.trace import TraceLine, WorkerDescription
from agent.runs.worker import TopicTask, Worker, WorkerSpecification, describe_worker

LOCAL = "local"
AnyWorker = TypeVar("AnyWorker")
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Workforce:
    """The workers that a run asks for. Another process opens the evidence itself, from the paths that are named."""

    specification: WorkerSpecification
    topics: Path
    evidence: Evidence  # as this process opened it
    count: int  # topics at a time
    concurrency: int = 1  # requests at a server at a time, of all workers together


@dataclass(frozen=True, slots=True)
class Backend:
    """Workers that are open, here or on a cluster.

    `answer` gets the tasks and the lines that were there before. It yields a line for each turn without a reply, as it
    is finished: the turns of a topic in order, topics as they come. What ends the run is raised there.
    """

    description: WorkerDescription  # what its workers are made of, the same for all of them
    answer: Callable[[Sequence[TopicTask], Iterable[TraceLine]], Iterator[TraceLine]]


@contextmanager
def open_local(workforce: Workforce) -> Iterator[Backend]:
    """Load the models of every worker. Raises what `WorkerSpecification.open` does."""
    limit = asyncio.Semaphore(workforce.concurrency)
    workers = [workforce.specification.open(workforce.evidence, limit) for _ in range(workforce.count)]

    def answer(tasks: Sequence[TopicTask], before: Iterable[TraceLine]) -> Iterator[TraceLine]:
        script = workers[0].tools.llm  # a script is played by one worker
        if isinstance(script, ScriptedModel):
            script.go_on_after(call for line in before for call in line.calls)
        return run_in_workers(Worker.answer, workers, tasks)

    yield Backend(describe_worker(workers[0], workforce.evidence), answer)


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
    left = iter(list(parts))  # shared: each part is taken by one thread
    ended = threading.Event()
    made: SimpleQueue[tuple[Result] | Future[None]] = SimpleQueue()  # what was yielded, and each worker that is done

    def take_parts(worker: AnyWorker) -> None:
        for part in left:
            for one in work(worker, part):
                made.put((one,))
                if ended.is_set():
                    return

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            for worker in workers:
                pool.submit(take_parts, worker).add_done_callback(made.put)
            busy = len(workers)
            while busy:
                found = made.get()
                if isinstance(found, Future):
                    found.result()
                    busy -= 1
                else:
                    yield found[0]
        finally:
            ended.set()
