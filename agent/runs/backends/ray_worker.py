"""What runs in the other process: an actor with a worker of its own, made from plain values and from paths."""

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent.models.hub import PREFIX
from agent.models.registry import is_server_address
from agent.runs.backends.protocol import TopicTask, Workforce
from agent.runs.backends.ray_shards import ShardsOnRay
from agent.runs.evidence import DEFAULT_INDEX, EvidenceFiles, open_evidence
from agent.runs.trace import TraceLine
from agent.runs.worker import Worker, WorkerDescription, WorkerSpecification, describe_worker
from agent.tracks.topic_files import read_topics
from indexes.sharding.sharded_index import ShardsHere
from schemas.errors import ConvagentError, RunError


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that an actor is made from. Every path is absolute: it must be readable on each node."""

    specification: WorkerSpecification
    topics: Path
    shards: ShardsOnRay | None = None  # those of the index, where workers do not open them themselves

    @classmethod
    def of(cls, workforce: Workforce, threads: int, shards: ShardsOnRay | None = None) -> "Recipe":
        """The recipe for a worker of this workforce that computes with so many threads."""
        plain = workforce.specification
        files, model = make_absolute(plain.files), make_name_absolute(plain.model)
        return cls(replace(plain, model=model, files=files, threads=threads), workforce.topics.absolute(), shards)


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


def make_name_absolute(model: str) -> str:
    """The name of a model, as an absolute path where it is that of a file."""
    is_elsewhere = model.startswith(PREFIX) or is_server_address(model)
    is_file = not is_elsewhere and (model.endswith(".gguf") or os.sep in model)
    return str(Path(model).expanduser().absolute()) if is_file else model


class RayWorker:
    """Answers topics in the process of an actor, and says on which node it is."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._worker: Worker | None = None

    def open(self) -> tuple[str, WorkerDescription]:
        """Load models and evidence: the node's name, and what the worker is made of."""
        node, specification, shards = socket.gethostname(), self._recipe.specification, self._recipe.shards
        try:
            topics = read_topics(self._recipe.topics)
            connect = shards.connect if shards else ShardsHere
            evidence = open_evidence(specification.files, topics, specification.plan, connect)
            self._worker = specification.open(evidence)
        except ConvagentError as error:
            error.where = f"node {node}: {error.where}" if error.where else f"node {node}"
            raise
        except OSError as error:
            where = f"node {node}: {error.filename or 'a file'}"
            raise RunError(f"cannot be read ({error.strerror or error})", where=where) from error
        return node, describe_worker(self._worker, evidence)

    def answer(self, task: TopicTask) -> Iterator[TraceLine]:
        """The lines of a topic, each as soon as its turn is finished."""
        assert self._worker is not None
        yield from self._worker.answer(task.topic, task.given, task.replies)
