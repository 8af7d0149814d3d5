"""Blocks of an index's passages, embedded by actors on a Ray cluster. Whoever asks them writes the vectors.

A block whose actor or node is lost is asked again of another, a few times.
"""

import socket
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.models.embedding.registry import open_embedder
from agent.runs.backends.ray import MAX_LOSSES
from agent.runs.backends.ray_cluster import (
    Cluster,
    find_cause,
    is_cluster,
    open_cluster,
    parse_cluster_address,
    summarise_loss,
)
from agent.runs.backends.ray_worker import make_name_absolute
from agent.runs.backends.registry import BACKEND_CHOICES, LOCAL
from indexes.index_vectors import EmbedBlocks, Tick, embed_block
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder, StoredVectors
from schemas.errors import RunError, UsageError

BLOCKS_AHEAD = 4  # for each actor, that may be finished before the one that is written next


@dataclass(frozen=True, slots=True)
class EmbeddingRecipe:
    """What an actor embeds, and with what: it must have the same on its node."""

    index: Path  # absolute
    embedder: str | None  # its name
    contents: str  # the digest of the passages
    digest: str  # of the embedding model

    @classmethod
    def of(cls, directory: Path, name: str | None, embedder: Embedder) -> "EmbeddingRecipe":
        index = PassageIndex(directory)
        return cls(index.directory.absolute(), name and make_name_absolute(name), index.info.contents, embedder.digest)


class BlockEmbedder:
    """Embeds blocks in the process of an actor."""

    def __init__(self, recipe: EmbeddingRecipe, threads: int) -> None:
        self._recipe, self._threads = recipe, threads
        self._opened: tuple[PassageIndex, Embedder] | None = None

    def embed(self, block: range) -> StoredVectors:
        """The vectors of some passages. Raises `UsageError` where passages or model are others than the recipe's."""
        index, embedder = self._opened = self._opened or self._open()
        return embed_block(index, embedder, block, lambda _more: None)

    def _open(self) -> tuple[PassageIndex, Embedder]:
        recipe = self._recipe
        index, embedder = PassageIndex(recipe.index), open_embedder(recipe.embedder, threads=self._threads)
        if embedder is None or (index.info.contents, embedder.digest) != (recipe.contents, recipe.digest):
            remedy = "Every node needs the same index and the same embedding model."
            raise UsageError("has other passages or another model", where=socket.gethostname(), remedy=remedy)
        return index, embedder


def open_block_embedders(
    on: str, jobs: int, name: str | None, embedder: Embedder | None, directory: Path
) -> AbstractContextManager[EmbedBlocks | None]:
    """What embeds blocks of an index where `--on` says; None for this process.

    `name` is the embedding model's. Raises `UsageError` for an unknown backend, and what `open_cluster` does.
    """
    if embedder and is_cluster(on):
        return _open_actors(on, jobs, EmbeddingRecipe.of(directory, name, embedder))
    if not (on == LOCAL or is_cluster(on)):
        raise UsageError(f"unknown backend {on!r} (available: {BACKEND_CHOICES})")
    if on == LOCAL and jobs != 1:
        raise UsageError("--jobs is for --on ray: in this process one job uses all cores")
    return nullcontext()


@contextmanager
def _open_actors(on: str, jobs: int, recipe: EmbeddingRecipe) -> Iterator[EmbedBlocks]:
    with open_cluster(parse_cluster_address(on), jobs) as cluster:
        crew = Crew(cluster, recipe)
        try:
            yield crew.embed_blocks
        finally:
            crew.close()


@dataclass(slots=True)
class Crew:
    """The actors, what they are asked for, and what they have sent."""

    cluster: Cluster
    recipe: EmbeddingRecipe
    _idle: list[Any] = field(default_factory=list)  # actors
    _asked: dict[Any, tuple[Any, range]] = field(default_factory=dict)  # by what is awaited: the actor and its block
    _finished: dict[range, StoredVectors] = field(default_factory=dict)
    _losses: Counter[range] = field(default_factory=Counter)

    def embed_blocks(self, blocks: Sequence[range], tick: Tick) -> Iterator[StoredVectors]:
        """An `EmbedBlocks`."""
        waiting = deque(blocks)
        self._idle = [self._start_actor() for _ in range(min(self.cluster.workers, len(blocks)))]
        for block in blocks:
            while block not in self._finished:
                self._ask(waiting)
                self._receive(waiting, tick)
            yield self._finished.pop(block)

    def close(self) -> None:
        """End the actors."""
        for actor in [*self._idle, *(actor for actor, _ in self._asked.values())]:
            self.cluster.ray.kill(actor)

    def _start_actor(self) -> Any:
        return self.cluster.start_actor(BlockEmbedder, self.recipe, self.cluster.threads)

    def _ask(self, waiting: deque[range]) -> None:
        room = BLOCKS_AHEAD * self.cluster.workers
        while self._idle and waiting and len(self._asked) + len(self._finished) < room:
            actor, block = self._idle.pop(), waiting.popleft()
            self._asked[actor.embed.remote(block)] = actor, block

    def _receive(self, waiting: deque[range], tick: Tick) -> None:
        """Wait until an actor has sent its block or is lost."""
        ray = self.cluster.ray
        [sent], _ = ray.wait(list(self._asked))
        actor, block = self._asked.pop(sent)
        try:
            self._finished[block] = ray.get(sent)
        except ray.exceptions.RayTaskError as error:
            raise find_cause(error, "") from error
        except ray.exceptions.RayError as error:
            ray.kill(actor)  # it may only seem to be lost
            self._note_loss(block, summarise_loss(error))
            waiting.appendleft(block)
            actor = self._start_actor()
        else:
            tick(len(block))
        self._idle.append(actor)

    def _note_loss(self, block: range, why: str) -> None:
        """Raises `RunError` where too many actors were lost at a block."""
        self._losses[block] += 1
        if self._losses[block] == MAX_LOSSES:
            what = f"{MAX_LOSSES} workers were lost at passages {block.start} to {block.stop - 1}: {why}"
            raise RunError(what, where=str(self.recipe.index))
