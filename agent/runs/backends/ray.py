"""Workers as actors on a Ray cluster. Whoever asks them writes the trace; they send each turn as it is finished.

A turn at which actors are lost again and again is answered in this process without the model, and says so: perhaps it
takes more memory than a node has. Where an index has many passages, its shards are actors, too, which all workers ask.
"""

import logging
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import prompts
from agent.runs.backends.protocol import TopicTask, Workforce
from agent.runs.backends.ray_cluster import (
    Cluster,
    Crew,
    Lost,
    find_cause,
    import_ray,
    make_name_absolute,
    open_cluster,
    parse_cluster_address,
    summarise_loss,
)
from agent.runs.evidence import DEFAULT_INDEX, EvidenceFiles, open_evidence
from agent.runs.trace import TraceLine, WorkerDescription
from agent.runs.worker import Worker, WorkerSpecification, describe_worker, hash_sources
from agent.tracks.topic_files import read_topics
from indexes.passage_index import Index, PassageIndex
from indexes.sharding.sharded_index import ByShard, ShardsHere, ask_shard
from schemas.errors import ConvagentError, RunError, UsageError, format_count
from schemas.records import Turn

PASSAGES_IN_WORKERS = 1_000_000  # up to which every worker had better search all shards itself
log = logging.getLogger("convagent")


class ShardActor:
    """Opens a shard with the first question, in the process of an actor. It has no state: once lost it is restarted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shard: PassageIndex | None = None

    def ask(self, question: str, arguments: tuple[Any, ...]) -> Any:
        """As `Shards` have it, of one. Raises what a shard raises, with the node's name."""
        try:
            self._shard = self._shard or PassageIndex(self._directory)
            return ask_shard(self._shard, question, arguments)
        except ConvagentError as error:
            error.where = f"node {socket.gethostname()}: {error.where}"
            raise


@dataclass(frozen=True, slots=True)
class ShardsOnRay:
    """`Shards` that are actors. It can be handed to other actors of the cluster."""

    actors: tuple[Any, ...]

    def ask(self, question: str, arguments: ByShard) -> ByShard:
        """As `Shards` has it. Raises `RunError` where a shard is lost again and again."""
        ray = import_ray()
        asked = [self.actors[shard].ask.remote(question, given) for shard, given in arguments.items()]
        try:
            return dict(zip(arguments, ray.get(asked), strict=True))
        except ray.exceptions.RayTaskError as error:
            raise find_cause(error) from error
        except ray.exceptions.RayError as error:
            raise RunError(f"a shard of the index was lost: {summarise_loss(error)}") from error

    def connect(self, _directories: Sequence[Path]) -> "ShardsOnRay":
        """As `Connect` has it: those that are there."""
        return self

    def close(self) -> None:
        """They end with those who started them."""


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


class RayWorker:
    """Answers turns in the process of an actor, and says on which node it is.

    It is made of plain values and of absolute paths, which must be readable on each node; of the shards of the index,
    where workers do not open them themselves.
    """

    def __init__(self, specification: WorkerSpecification, topics: Path, shards: ShardsOnRay | None) -> None:
        self._specification, self._topics, self._shards = specification, topics, shards
        self._opened: tuple[str, WorkerDescription, Worker] | None = None

    def open(self) -> tuple[str, WorkerDescription]:
        """Load models and evidence: the node's name, and what the worker is made of."""
        self._opened = self._open()
        return self._opened[:2]

    def _open(self) -> tuple[str, WorkerDescription, Worker]:
        node, made_from = socket.gethostname(), self._specification
        try:
            connect = self._shards.connect if self._shards else ShardsHere
            evidence = open_evidence(made_from.files, read_topics(self._topics), made_from.plan, connect)
            worker = made_from.open(evidence)
        except ConvagentError as error:
            error.where = f"node {node}: {error.where}" if error.where else f"node {node}"
            raise
        except OSError as error:
            where = f"node {node}: {error.filename or 'a file'}"
            raise RunError(f"cannot be read ({error.strerror or error})", where=where) from error
        return node, describe_worker(worker, evidence), worker

    def answer(self, task: TopicTask) -> tuple[str, WorkerDescription, TraceLine]:
        """As `open` has it, which is called again where another actor was lost, and the line of a topic's next turn."""
        node, made_of, worker = self._opened = self._opened or self._open()
        return node, made_of, next(worker.answer(task.topic, task.given, task.replies))


@contextmanager
def open_ray(name: str, workforce: Workforce) -> Iterator["RayBackend"]:
    """Actors on the cluster that `--on` names. Raises what `open_cluster` does, and what the first one to open does."""
    count = min(workforce.count, workforce.concurrency)  # each sends one request at a time
    log.info("starting %s on Ray", format_count(count, "worker"))
    with (
        open_cluster(parse_cluster_address(name), count) as cluster,
        closing(RayBackend(cluster, workforce)) as backend,
    ):
        backend.wait_for_first()
        yield backend


class RayBackend:
    """Hands turns to actors and takes them answered: the turns of a topic in order, as many topics at a time."""

    def __init__(self, cluster: Cluster, workforce: Workforce) -> None:
        self._workforce, self._ray = workforce, cluster.ray
        self._description: WorkerDescription | None = None
        self._modelless: Worker | None = None
        self._strangers: set[str] = set()  # nodes that have another kind of processor than the first
        self._shards = _start_shards(cluster, workforce.evidence.index)
        plain = workforce.specification
        files, model = make_absolute(plain.files), make_name_absolute(plain.model)
        specification = replace(plain, model=model, files=files, threads=cluster.threads)
        self._crew = Crew(cluster, RayWorker, specification, workforce.topics.absolute(), self._shards)

    @property
    def description(self) -> WorkerDescription:
        assert self._description is not None
        return self._description

    @property
    def in_flight(self) -> int:
        return self._crew.in_hand

    def continue_script(self, lines: Iterable[TraceLine]) -> None:
        """Scripts are played in one process alone."""

    def close(self) -> None:
        """End the actors."""
        self._crew.close()
        for shard in self._shards.actors if self._shards else ():
            self._ray.kill(shard)

    def wait_for_first(self) -> None:
        """Until one actor is open. Raises what kept it from that."""
        while self._description is None:
            list(self._receive())

    def answer(self, tasks: Sequence[TopicTask]) -> Iterator[TraceLine]:
        waiting = self._crew.waiting
        waiting.extend(task for task in tasks if find_next_turn(task))
        while waiting or self.in_flight:
            for task, line in self._receive():
                answered = line.answered
                if answered.without_model:  # what an actor itself logged of it is shown nowhere
                    log.warning("turn %s is answered without the model: %s", answered.turn_id, answered.without_model)
                rest = replace(task, replies={**task.replies, answered.turn_id: answered.response.text})
                if find_next_turn(rest):
                    waiting.appendleft(rest)  # for the actor that has read this conversation
                yield line

    def _receive(self) -> Iterator[tuple[TopicTask, TraceLine]]:
        for task, reply in self._crew.receive():
            if isinstance(reply, Lost):
                yield task, self._answer_here(task, reply.why)
                continue
            node, made_of, *lines = reply
            self._check(node, made_of)
            yield from ((task, line) for line in lines)

    def _check(self, node: str, made_of: WorkerDescription) -> None:
        """Check that an actor is made of the same as this process, and as the others. Raises `UsageError`."""
        found, expected = asdict(made_of), self._expect()
        if different := [name for name, value in expected.items() if found[name] != value]:
            lines = [f"  {name}: {found[name]} there, {expected[name]} elsewhere" for name in different]
            remedy = "Every node needs the same convagent, the same models and the same files."
            what = "\n".join(["a worker would answer by something else than the others:", *lines])
            raise UsageError(what, where=f"node {node}", remedy=remedy)
        self._description = self._description or made_of
        if made_of.processor != self._description.processor and node not in self._strangers:
            self._strangers.add(node)
            what = "node %s has another kind of processor: what is answered there may differ (docs/reliability.md)"
            log.warning(what, node)

    def _expect(self) -> dict[str, Any]:
        """What a worker has to be made of, save the processor."""
        if self._description:
            return {name: value for name, value in asdict(self._description).items() if name != "processor"}
        code = {"prompts": prompts.digest(), "convagent": version("convagent"), "sources": hash_sources()}
        return code | {"passages": self._workforce.evidence.digest}

    def _answer_here(self, task: TopicTask, why: str) -> TraceLine:
        """The next turn of a topic, answered without the model."""
        if self._modelless is None:
            specification = replace(self._workforce.specification, model="none")
            self._modelless = specification.open(self._workforce.evidence)
        line = next(self._modelless.answer(task.topic, task.given, task.replies))
        return replace(line, answered=replace(line.answered, without_model=why))


def find_next_turn(task: TopicTask) -> Turn | None:
    """The first turn that has no reply; None where all have one."""
    return next((turn for turn in task.topic.turns if turn.id not in task.replies), None)


def _start_shards(cluster: Cluster, index: Index | None) -> ShardsOnRay | None:
    """The shards of an index as actors; None for one that has none, or that every worker had better search itself.

    The cluster spreads them over its nodes, so that each node keeps its own shards' files in memory.
    """
    if index is None or not index.info.shards or len(index) <= PASSAGES_IN_WORKERS:
        return None
    spread = {"num_cpus": 0, "scheduling_strategy": "SPREAD", "max_concurrency": max(2, cluster.workers)}
    actors = (cluster.start_actor(ShardActor, path.absolute(), **spread) for path in index.part_directories)
    return ShardsOnRay(tuple(actors))
