"""Blocks of an index's passages, embedded by actors on a Ray cluster. Whoever asks them writes the vectors."""

import socket
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path

from agent.models.embedding.registry import open_embedder
from agent.runs.backends.local import LOCAL
from agent.runs.backends.ray_cluster import Crew, make_name_absolute, open_cluster, parse_cluster_address
from indexes.index_vectors import EmbedBlocks, Tick, embed_block
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder, StoredVectors
from schemas.errors import UsageError

BLOCKS_AHEAD = 4  # for each actor, that may be finished before the one that is written next


class BlockEmbedder:
    """Embeds blocks in the process of an actor. Its node must have the index and the model with the same `digests`."""

    def __init__(self, index: Path, embedder: str | None, digests: tuple[str, str], threads: int) -> None:
        self._index, self._embedder, self._digests, self._threads = index, embedder, digests, threads
        self._embed: partial[StoredVectors] | None = None

    def answer(self, block: range) -> StoredVectors:
        """The vectors of some passages. Raises `UsageError` where passages or model are others."""
        self._embed = self._embed or self._open()
        return self._embed(block, lambda _more: None)

    def _open(self) -> "partial[StoredVectors]":
        index, embedder = PassageIndex(self._index), open_embedder(self._embedder, threads=self._threads)
        if embedder is None or (index.info.contents, embedder.digest) != self._digests:
            remedy = "Every node needs the same index and the same embedding model."
            raise UsageError("has other passages or another model", where=socket.gethostname(), remedy=remedy)
        return partial(embed_block, index, embedder)


def open_block_embedders(
    on: str, jobs: int, name: str | None, embedder: Embedder | None, directory: Path
) -> AbstractContextManager[EmbedBlocks | None]:
    """What embeds blocks of an index where `--on` says; None for this process.

    `name` is the embedding model's. Raises `UsageError` for an unknown backend, and what `open_cluster` does.
    """
    if on != LOCAL:
        address = parse_cluster_address(on)
        return _open_actors(address, jobs, name, embedder, PassageIndex(directory)) if embedder else nullcontext()
    if jobs != 1:
        raise UsageError("--jobs is for --on ray: in this process one job uses all cores")
    return nullcontext()


@contextmanager
def _open_actors(
    address: str | None, jobs: int, name: str | None, embedder: Embedder, index: PassageIndex
) -> Iterator[EmbedBlocks]:
    path, digests = index.directory.absolute(), (index.info.contents, embedder.digest)
    with open_cluster(address, jobs) as cluster:
        made_of = (path, name and make_name_absolute(name), digests, cluster.threads)
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
