"""What a backend does, and the one of this process: each thread answers one topic at a time."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from agent.models.scripted import ScriptedModel
from agent.runs.evidence import Evidence
from agent.runs.trace import TraceLine, WorkerDescription
from agent.runs.worker import Worker, WorkerSpecification, describe_worker
from schemas.records import Provided, Topic

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
class TopicTask:
    """A topic to be answered, with all that a worker is handed for it."""

    topic: Topic
    given: Mapping[str, Provided]  # by turn id
    replies: Mapping[str, str]  # of the turns that are answered already, by turn id


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
        script = workers[0].llm  # a script is played by one worker
        if isinstance(script, ScriptedModel):
            script.go_on_after(call for line in before for call in line.calls)
        return run_in_workers(_answer_topic, workers, tasks)

    yield Backend(describe_worker(workers[0], workforce.evidence), answer)


def _answer_topic(worker: Worker, task: TopicTask) -> Iterator[TraceLine]:
    return worker.answer(task.topic, task.given, task.replies)


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
    made: SimpleQueue[tuple[Result] | BaseException | None] = SimpleQueue()  # None: a worker is done

    def take_parts(worker: AnyWorker) -> None:
        try:
            for part in left:
                for one in work(worker, part):
                    made.put((one,))
                    if ended.is_set():
                        return
            made.put(None)
        except BaseException as error:  # raised again by whoever reads
            made.put(error)

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            busy = len([pool.submit(take_parts, worker) for worker in workers])
            while busy:
                match made.get():
                    case None:
                        busy -= 1
                    case BaseException() as error:
                        raise error
                    case (one,):
                        yield one
        finally:
            ended.set()
