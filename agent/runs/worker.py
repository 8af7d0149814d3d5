"""A worker answers one topic at a time. It is made from a specification that another process can make it from, too.

A backend is where the workers of a run are: in this process, where each thread has one, or on a Ray cluster (`ray.py`).
"""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue

import prompts
from agent.flow import Tools, answer_topic
from agent.models.embedding.multilingual import find_file
from agent.models.learned import MULTILINGUAL_READER, QUERY_ENCODER, READER, hash_learned
from agent.models.no_model import NoModel
from agent.models.registry import open_embedder, open_model
from agent.models.scripted import ScriptedModel
from agent.runs.evidence import Evidence, EvidenceFiles
from agent.runs.trace import TraceLine, WorkerDescription
from indexes.index_vectors import cache_vectors
from indexes.ranking.vectors import Embedder
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from indexes.storage.files import hash_file
from schemas.records import Call, Plan, Provided, Topic

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class WorkerSpecification:
    """Everything that a worker is made from, as plain values that can be pickled."""

    model: str
    files: EvidenceFiles
    plan: Plan
    needs_vectors: bool = True  # whether an embedding model is of any use
    threads: int | None = None  # of each model; None: one a physical core
    cache: bool = True  # whether replies and vectors are kept, and taken from what is kept

    def open(self, evidence: Evidence, concurrency: asyncio.Semaphore | None = None) -> "Worker":
        """Load the models. Raises what `open_model` and `open_embedder` do. Workers of one server share a limit."""
        calls: list[Call] = []
        replies = Cache(find_cache_directory() / "replies.sqlite") if self.cache else None
        llm = open_model(self.model, calls.append, threads=self.threads, cache=replies, concurrency=concurrency)
        embedder = open_embedder(self.files.embedder, threads=self.threads) if self.needs_vectors else None
        if embedder and self.cache:
            embedder = cache_vectors(embedder)
        search = evidence.open_search(embedder, self.plan, calls.append)
        tools = Tools(llm, search, evidence.read, self.plan, embedder, NoModel(calls.append))
        return Worker(tools, calls)


@dataclass(frozen=True, slots=True)
class TopicTask:
    """A topic to be answered, with all that a worker is handed for it."""

    topic: Topic
    given: Mapping[str, Provided]  # by turn id
    replies: Mapping[str, str]  # of the turns that are answered already, by turn id


@dataclass(frozen=True, slots=True)
class Worker:
    """Opened models over opened evidence. Not for several threads at once."""

    tools: Tools
    calls: list[Call]  # of the models and the search, since the last turn

    def answer(self, task: TopicTask) -> Iterator[TraceLine]:
        """A line of the trace for each turn that has no reply yet, with the calls that made it."""
        started = time.perf_counter()
        for result in answer_topic(task.topic, self.tools, task.given, task.replies):
            calls = tuple(self.calls)
            self.calls.clear()
            yield TraceLine(result, calls, round(time.perf_counter() - started, 3))
            started = time.perf_counter()


def describe_worker(worker: Worker, evidence: Evidence) -> WorkerDescription:
    """What a worker is made of, over the evidence that it was opened with."""
    llm, embedder, processor = worker.tools.llm, worker.tools.embedder, ""
    if llm.runs_here or embedder:
        from agent.models.local.weights import describe_processor

        processor = describe_processor()
    return WorkerDescription(
        passages=evidence.digest,
        model=llm.name,
        model_digest=llm.digest,
        model_settings=llm.settings,
        embedder=embedder.name if embedder else "",
        embedder_digest=embedder.digest if embedder else "",
        encoder_digest=_hash_taught(embedder) if embedder else "",
        processor=processor,
        **describe_code(),
    )


def describe_code() -> dict[str, str]:
    """What of a worker is the same in every process that has this program."""
    return {"prompts": prompts.digest(), "convagent": version("convagent"), "source_code": hash_sources()}


def _hash_taught(embedder: Embedder) -> str:
    """One digest of what the embedding model was taught beside; empty of a model that was taught nothing."""
    readers = [READER, *([MULTILINGUAL_READER] if find_file() else [])] if embedder.read else []
    taught = [*([QUERY_ENCODER] if embedder.encode_turn else []), *(path for path in readers if path.is_file())]
    return hashlib.sha256("".join(map(hash_learned, taught)).encode()).hexdigest() if taught else ""


@dataclass(frozen=True, slots=True)
class Workforce:
    """The workers that a run asks for. Another process opens the evidence itself, from the paths that are named."""

    specification: WorkerSpecification
    topics: Path
    evidence: Evidence  # as this process opened it
    count: int  # topics at a time
    concurrency: int = 1  # requests at a server at a time, of all workers together


# Gets the tasks and the lines that were there before. It yields a line for each turn without a reply, as it is
# finished: the turns of a topic in order, topics as they come. What ends the run is raised there.
AnswerTasks = Callable[[Sequence[TopicTask], Iterable[TraceLine]], Iterator[TraceLine]]
Backend = tuple[WorkerDescription, AnswerTasks]  # what all its workers are made of, and what has them answer


@contextmanager
def open_local(workforce: Workforce) -> Iterator[Backend]:
    """Load the models of every worker. Raises what `WorkerSpecification.open` does."""
    limit = asyncio.Semaphore(workforce.concurrency)
    workers = [workforce.specification.open(workforce.evidence, limit) for _ in range(workforce.count)]

    def answer(tasks: Sequence[TopicTask], before: Iterable[TraceLine]) -> Iterator[TraceLine]:
        script = workers[0].tools.llm  # a script is played by one worker
        if isinstance(script, ScriptedModel):
            script.go_on_after(call for line in before for call in line.calls)
        return answer_in_threads(workers, tasks)

    yield describe_worker(workers[0], workforce.evidence), answer


def answer_in_threads(workers: Sequence[Worker], tasks: Iterable[TopicTask]) -> Iterator[TraceLine]:
    """The lines of all tasks, as they come; with one worker in the order of the tasks.

    What one of them raises is raised here. Then, and when this is broken off, the others end with what they have in
    hand.
    """
    if len(workers) == 1:
        for task in tasks:
            yield from workers[0].answer(task)
        return
    left = iter(list(tasks))  # shared: each task is taken by one thread
    ended = threading.Event()
    made: SimpleQueue[TraceLine | Future[None]] = SimpleQueue()  # lines, and each worker that is done

    def take_tasks(worker: Worker) -> None:
        for task in left:
            for line in worker.answer(task):
                made.put(line)
                if ended.is_set():
                    return

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            for worker in workers:
                pool.submit(take_tasks, worker).add_done_callback(made.put)
            busy = len(workers)
            while busy:
                found = made.get()
                if isinstance(found, Future):
                    found.result()
                    busy -= 1
                else:
                    yield found
        finally:
            ended.set()


PACKAGES = ("agent", "indexes", "prompts", "schemas")
SUFFIXES = (".py", ".toml", ".txt", ".safetensors", ".gguf")  # code, words, prompts, and what was taught
HOME = Path(__file__).parents[2]


@cache
def hash_sources() -> str:
    """The first digits of a BLAKE2 of all files of the packages, their names included."""
    hashed = hashlib.blake2b(digest_size=8)
    for path in sorted(path for name in PACKAGES for path in (HOME / name).rglob("*") if path.suffix in SUFFIXES):
        hashed.update(f"{path.relative_to(HOME).as_posix()}\0{hash_file(path, 'blake2b')}\n".encode())
    return hashed.hexdigest()
