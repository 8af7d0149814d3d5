"""Workers as actors on a Ray cluster. Whoever asks them writes the trace; they send each turn as it is finished.

Where an index has many passages, its shards are actors, too, which all workers ask. Blocks of an index's passages are
embedded by actors, too; whoever asks them writes the vectors.
"""

import logging
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from agent.models.registry import open_embedder
from agent.runs.evidence import DEFAULT_INDEX, EvidenceFiles, open_evidence
from agent.runs.ray_cluster import (
    Cluster,
    Crew,
    get_reply,
    import_ray,
    make_name_absolute,
    open_cluster,
    parse_cluster_address,
)
from agent.runs.trace import TraceLine, WorkerDescription
from agent.runs.worker import Backend, TopicTask, Worker, WorkerSpecification, Workforce, describe_code, describe_worker
from agent.tracks.files import read_topics
from indexes.index_vectors import EmbedBlocks, Tick, embed_block
from indexes.passage_index import Index, PassageIndex
from indexes.ranking.vectors import Embedder, StoredVectors
from indexes.sharding.sharded_index import ByShard, Connect, ShardsHere, ask_shard
from schemas.errors import ConvagentError, RunError, UsageError, format_count
from schemas.records import Turn

PASSAGES_IN_WORKERS = 1_000_000  # up to which every worker had better search all shards itself
BLOCKS_AHEAD = 4  # for each actor, that may be finished before the one that is written next
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
        asked = [self.actors[shard].ask.remote(question, given) for shard, given in arguments.items()]
        replies = get_reply(import_ray(), asked, "a shard of the index was lost")
        return dict(zip(arguments, replies, strict=True))

    def close(self) -> None:
        """They end with those who started them."""


@contextmanager
def _start_shards(cluster: Cluster, index: Index | None) -> Iterator[ShardsOnRay | None]:
    """The shards of an index as actors; None for one that has none, or that every worker had better search itself.

    The cluster spreads them over its nodes, so that each node keeps its own shards' files in memory.
    """
    if index is None or not index.info.shards or len(index) <= PASSAGES_IN_WORKERS:
        yield None
        return
    spread = {"num_cpus": 0, "scheduling_strategy": "SPREAD", "max_concurrency": max(2, cluster.workers)}
    actors = [cluster.start_actor(ShardActor, path.absolute(), **spread) for path in index.part_directories]
    yield ShardsOnRay(tuple(actors))
    for actor in actors:
        cluster.ray.kill(actor)


class RayWorker:
    """Answers turns in the process of an actor, and says on which node it is.

    It is made of plain values and of absolute paths, which must be readable on each node; of the shards of the index,
    where workers do not open them themselves.
    """

    def __init__(self, specification: WorkerSpecification, topics: Path, shards: ShardsOnRay | None) -> None:
        self._specification, self._topics, self._shards = specification, topics, shards

    def open(self) -> tuple[str, WorkerDescription]:
        """Load models and evidence: the node's name, and what the worker is made of."""
        return self._opened[:2]

    @cached_property
    def _opened(self) -> tuple[str, WorkerDescription, Worker]:
        node, made_from, shards = socket.gethostname(), self._specification, self._shards
        try:
            connect: Connect = (lambda _directories: shards) if shards else ShardsHere
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
        """As `open` has it, loaded anew where another actor was lost, and the line of a topic's next turn."""
        node, made_of, worker = self._opened
        return node, made_of, next(worker.answer(task))


@contextmanager
def open_ray(name: str, workforce: Workforce) -> Iterator[Backend]:
    """Actors on the cluster that `--on` names. Raises what `open_cluster` does, and what the first one to open does."""
    count = min(workforce.count, workforce.concurrency)  # each sends one request at a time
    log.info("starting %s on Ray", format_count(count, "worker"))
    plain, evidence = workforce.specification, workforce.evidence
    with open_cluster(parse_cluster_address(name), count) as cluster, _start_shards(cluster, evidence.index) as shards:
        model, files = make_name_absolute(plain.model), make_absolute(plain.files)
        specification = replace(plain, model=model, files=files, threads=cluster.threads)
        with closing(Crew(cluster, RayWorker, specification, workforce.topics.absolute(), shards)) as crew:
            node, made_of = crew.open()
            _check_same(node, made_of, describe_code() | {"passages": evidence.digest})
            yield made_of, lambda tasks, _before: _answer_topics(tasks, crew, made_of)


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


def _answer_topics(tasks: Iterable[TopicTask], crew: Crew, made_of: WorkerDescription) -> Iterator[TraceLine]:
    """The turns of a topic in order, as many topics at a time as there are actors; all have to be made of the same."""
    expected = asdict(made_of)
    processors = {expected.pop("processor")}
    waiting = deque(task for task in tasks if find_next_turn(task))
    for task, (node, found, line) in crew.run(waiting):
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


class BlockEmbedder:
    """Embeds blocks in the process of an actor. Its node must have the index and the model with the same `digests`."""

    def __init__(self, index: Path, embedder: str | None, digests: tuple[str, str], threads: int) -> None:
        self._index, self._embedder, self._digests, self._threads = index, embedder, digests, threads

    def answer(self, block: range) -> StoredVectors:
        """The vectors of some passages. Raises `UsageError` where passages or model are others."""
        return self._embed(block, lambda _more: None)

    @cached_property
    def _embed(self) -> "partial[StoredVectors]":
        index, embedder = PassageIndex(self._index), open_embedder(self._embedder, threads=self._threads)
        if embedder is None or (index.info.contents, embedder.digest) != self._digests:
            remedy = "Every node needs the same index and the same embedding model."
            raise UsageError("has other passages or another model", where=socket.gethostname(), remedy=remedy)
        return partial(embed_block, index, embedder)


@contextmanager
def open_block_embedders(
    on: str, jobs: int, name: str | None, embedder: Embedder | None, directory: Path
) -> Iterator[EmbedBlocks | None]:
    """What embeds blocks of an index where `--on` says; None for this process.

    `name` is the embedding model's. Raises `UsageError` for an unknown backend, and what `open_cluster` does.
    """
    if on == "local":
        if jobs != 1:
            raise UsageError("--jobs is for --on ray: in this process one job uses all cores")
        yield None
        return
    address, index = parse_cluster_address(on), PassageIndex(directory)
    assert embedder  # without a model nobody asks for this
    digests = index.info.contents, embedder.digest
    with open_cluster(address, jobs) as cluster:
        made_of = (index.directory.absolute(), name and make_name_absolute(name), digests, cluster.threads)
        with closing(Crew(cluster, BlockEmbedder, *made_of)) as crew:
            yield partial(embed_blocks, crew, BLOCKS_AHEAD * jobs)


def embed_blocks(crew: Crew, room: int, blocks: Sequence[range], tick: Tick) -> Iterator[StoredVectors]:
    """An `EmbedBlocks`, of which so many may be in hand or finished before the one that is written next."""
    finished: dict[range, StoredVectors] = {}
    unwritten, rest = deque(blocks), iter(blocks)
    waiting = deque(islice(rest, room))
    for block, vectors in crew.run(waiting):
        finished[block] = vectors
        tick(len(block))
        while unwritten and unwritten[0] in finished:
            yield finished.pop(unwritten.popleft())
            waiting.extend(islice(rest, 1))
