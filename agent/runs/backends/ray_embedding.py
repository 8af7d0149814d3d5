"""Blocks of an index's passages, embedded by actors on a Ray cluster. Whoever asks them writes the vectors."""

import socket
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from agent.models.embedding.registry import open_embedder
from agent.runs.backends.ray_cluster import (
    OPENING,
    Crew,
    Lost,
    is_cluster,
    make_name_absolute,
    open_cluster,
    parse_cluster_address,
)
from agent.runs.backends.registry import BACKEND_CHOICES, LOCAL
from indexes.index_vectors import EmbedBlocks, Tick, embed_block
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder, StoredVectors
from schemas.errors import RunError, UsageError

BLOCKS_AHEAD = 4  # for each actor, that may be finished before the one that is written next


class BlockEmbedder:
    """Embeds blocks in the process of an actor. Its node must have the index and the model with the same `digests`."""

    def __init__(self, index: Path, embedder: str | None, digests: tuple[str, str], threads: int) -> None:
        self._index, self._embedder, self._digests, self._threads = index, embedder, digests, threads
        self._embed: partial[StoredVectors] | None = None

    def open(self) -> None:
        """Raises `UsageError` where passages or model are others."""
        index, embedder = PassageIndex(self._index), open_embedder(self._embedder, threads=self._threads)
        if embedder is None or (index.info.contents, embedder.digest) != self._digests:
            remedy = "Every node needs the same index and the same embedding model."
            raise UsageError("has other passages or another model", where=socket.gethostname(), remedy=remedy)
        self._embed = partial(embed_block, index, embedder)

    def answer(self, block: range) -> StoredVectors:
        """The vectors of some passages."""
        if self._embed is None:  # another actor was lost
            self.open()
        assert self._embed is not None
        return self._embed(block, lambda _more: None)


def open_block_embedders(
    on: str, jobs: int, name: str | None, embedder: Embedder | None, directory: Path
) -> AbstractContextManager[EmbedBlocks | None]:
    """What embeds blocks of an index where `--on` says; None for this process.

    `name` is the embedding model's. Raises `UsageError` for an unknown backend, and what `open_cluster` does.
    """
    if embedder and is_cluster(on):
        return _open_actors(on, jobs, name and make_name_absolute(name), embedder, PassageIndex(directory))
    if not (on == LOCAL or is_cluster(on)):
        raise UsageError(f"unknown backend {on!r} (available: {BACKEND_CHOICES})")
    if on == LOCAL and jobs != 1:
        raise UsageError("--jobs is for --on ray: in this process one job uses all cores")
    return nullcontext()


@contextmanager
def _open_actors(
    on: str, jobs: int, name: str | None, embedder: Embedder, index: PassageIndex
) -> Iterator[EmbedBlocks]:
    with open_cluster(parse_cluster_address(on), jobs) as cluster:
        path, digests = index.directory.absolute(), (index.info.contents, embedder.digest)
        with closing(Crew(cluster, BlockEmbedder, path, name, digests, cluster.threads)) as crew:
            yield partial(embed_blocks, crew, BLOCKS_AHEAD * jobs)


def embed_blocks(crew: Crew, room: int, blocks: Sequence[range], tick: Tick) -> Iterator[StoredVectors]:
    """An `EmbedBlocks`, of which so many may be in hand or finished before the one that is written next."""
    finished: dict[range, StoredVectors] = {}
    rest = deque(blocks)
    for block in blocks:
        while block not in finished:
            while rest and len(crew.waiting) + crew.in_hand + len(finished) < room:
                crew.waiting.append(rest.popleft())
            for done, vectors in crew.receive():
                if isinstance(vectors, Lost):
                    raise RunError(f"passages {done.start} to {done.stop - 1}: {vectors.why}")
                if done is not OPENING:
                    finished[done] = vectors
                    tick(len(done))
        yield finished.pop(block)
