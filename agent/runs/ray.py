"""Workers as actors on a Ray cluster. Whoever asks them writes the trace; they send each turn as it is finished."""

import logging
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from agent.runs.evidence import DEFAULT_INDEX, EvidenceFiles, open_evidence
from agent.runs.ray_cluster import MAX_LOSSES, get_reply, make_name_absolute, open_cluster, parse_cluster_address
from agent.runs.trace import TraceLine, WorkerDescription
from agent.runs.worker import Backend, TopicTask, Worker, WorkerSpecification, Workforce, describe_code, describe_worker
from agent.tracks.files import read_topics
from schemas.errors import ConvagentError, RunError, UsageError, format_count
from schemas.records import Turn

NOTICE_SECONDS = 60  # until it is said that the cluster has no room for a worker yet
log = logging.getLogger("convagent")


class RayWorker:
    """Answers turns in the process of an actor, and says on which node it is.

    It is made of plain values and of absolute paths, which must be readable on each node.
    """

    def __init__(self, specification: WorkerSpecification, topics: Path) -> None:
        self._specification, self._topics = specification, topics

    def open(self) -> tuple[str, WorkerDescription]:
        """Load models and evidence: the node's name, and what the worker is made of."""
        return self._opened[:2]

    @cached_property
    def _opened(self) -> tuple[str, WorkerDescription, Worker]:
        node, made_from = socket.gethostname(), self._specification
        try:
            evidence = open_evidence(made_from.files, read_topics(self._topics), made_from.plan)
            worker = made_from.open(evidence)
        except ConvagentError as error:
            error.where = f"node {node}: {error.where}" if error.where else f"node {node}"
            raise
        except OSError as error:
            where = f"node {node}: {error.filename or 'a file'}"
            raise RunError(f"cannot be read ({error.strerror or error})", where=where) from error
        return node, describe_worker(worker, evidence), worker

    def answer(self, task: TopicTask) -> tuple[str, WorkerDescription, TraceLine]:
        """As `open` has it, loaded anew where another actor was lost, and the line of a topic's next turn."""
        node, made_of, worker = self._opened
        return node, made_of, next(worker.answer(task))


@contextmanager
def open_ray(name: str, workforce: Workforce) -> Iterator[Backend]:
    """Actors on the cluster that `--on` names. Raises what `open_cluster` does, and what the first one to open does."""
    count = min(workforce.count, workforce.concurrency)  # each sends one request at a time
    log.info("starting %s on Ray", format_count(count, "worker"))
    plain = workforce.specification
    with open_cluster(parse_cluster_address(name), count) as cluster:
        model, files = make_name_absolute(plain.model), make_absolute(plain.files)
        specification = replace(plain, model=model, files=files, threads=cluster.threads)
        made_from = specification, workforce.topics.absolute()
        actors = [cluster.start_actor(RayWorker, *made_from) for _ in range(count)]
        try:
            node, made_of = _open_actors(cluster.ray, actors)
            _check_same(node, made_of, describe_code() | {"passages": workforce.evidence.digest})
            yield made_of, lambda tasks, _before: _answer_topics(tasks, cluster.ray, actors, made_of)
        finally:
            for actor in actors:
                cluster.ray.kill(actor)


def make_absolute(files: EvidenceFiles) -> EvidenceFiles:
    """The same files, named so that they are found from any directory."""
    index = files.index or (DEFAULT_INDEX if files.ranking is None else None)
    return replace(
        files,
        index=index and index.absolute(),
        ranking=files.ranking and files.ranking.absolute(),
        passages=tuple(path.absolute() for path in files.passages),
        embedder=files.embedder and make_name_absolute(files.embedder),
    )


def _open_actors(ray: Any, actors: Sequence[Any]) -> tuple[str, WorkerDescription]:
    """What the first one says that is ready. Raises what it raises."""
    asked = [actor.open.remote() for actor in actors]
    while not (ready := ray.wait(asked, timeout=NOTICE_SECONDS)[0]):
        log.info("still waiting for a worker: the cluster has no room for one, or its models take long to load")
    found: tuple[str, WorkerDescription] = get_reply(ray, ready[0], "no worker can be started")
    return found


def _answer_topics(
    tasks: Iterable[TopicTask], ray: Any, actors: Sequence[Any], made_of: WorkerDescription
) -> Iterator[TraceLine]:
    """The turns of a topic in order, as many topics at a time as there are actors; all have to be made of the same.

    Raises what an actor raises, and `RunError` for a turn at which actors were lost again and again.
    """
    expected = asdict(made_of)
    processors = {expected.pop("processor")}
    waiting = deque(task for task in tasks if find_next_turn(task))
    idle, asked = [*actors], dict[Any, tuple[Any, TopicTask]]()
    while waiting or asked:
        while waiting and idle:
            actor, task = idle.pop(), waiting.popleft()
            asked[actor.answer.remote(task)] = actor, task
        [reply], _ = ray.wait(list(asked))
        actor, task = asked.pop(reply)
        idle.append(actor)
        node, found, line = get_reply(ray, reply, f"{MAX_LOSSES} workers were lost at the same task")
        _check_same(node, found, expected)
        if found.processor not in processors:
            processors.add(found.processor)
            what = "node %s has another kind of processor: what is answered there may differ (docs/reliability.md)"
            log.warning(what, node)
        answered = line.answered
        if answered.without_model:  # what an actor itself logged of it is shown nowhere
            log.warning("turn %s is answered without the model: %s", answered.turn_id, answered.without_model)
        rest = replace(task, replies={**task.replies, answered.turn_id: answered.response.text})
        if find_next_turn(rest):
            waiting.appendleft(rest)  # for the actor that has read this conversation
        yield line


def find_next_turn(task: TopicTask) -> Turn | None:
    """The first turn that has no reply; None where all have one."""
    return next((turn for turn in task.topic.turns if turn.id not in task.replies), None)


def _check_same(node: str, made_of: WorkerDescription, expected: Mapping[str, Any]) -> None:
    """Raises `UsageError` where an actor is made of something else than this process, or than the others."""
    found = asdict(made_of)
    if different := [name for name, value in expected.items() if found[name] != value]:
        lines = [f"  {name}: {found[name]} there, {expected[name]} elsewhere" for name in different]
        remedy = "Every node needs the same convagent, the same models and the same files."
        what = "\n".join(["a worker would answer by something else than the others:", *lines])
        raise UsageError(what, where=f"node {node}", remedy=remedy)
