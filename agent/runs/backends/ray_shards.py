"""The shards of an index as actors on a Ray cluster, one each, which all its workers ask.

The cluster spreads them over its nodes, so that each node keeps its own shards' files in memory. A shard has no state:
one that is lost is started again, and asked again.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.runs.backends.ray_cluster import Cluster, find_cause, import_ray, summarise_loss
from indexes.passage_index import Index, PassageIndex
from indexes.sharding.sharded_index import ByShard, ask_shard
from schemas.errors import ConvagentError, RunError

PASSAGES_IN_WORKERS = 1_000_000  # up to which every worker had better search all shards itself


class ShardActor:
    """Opens a shard with the first question, in the process of an actor."""

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
            raise find_cause(error, "") from error
        except ray.exceptions.RayError as error:
            raise RunError(f"a shard of the index was lost: {summarise_loss(error)}") from error

    def connect(self, _directories: Sequence[Path]) -> "ShardsOnRay":
        """As `Connect` has it: those that are there."""
        return self

    def close(self) -> None:
        """They end with those who started them."""


def start_shards(cluster: Cluster, index: Index | None) -> ShardsOnRay | None:
    """The shards of an index as actors; None for one that has none, or that every worker had better search itself."""
    if index is None or not index.info.shards or len(index) <= PASSAGES_IN_WORKERS:
        return None
    return ShardsOnRay(tuple(cluster.start_service(ShardActor, path.absolute()) for path in index.part_directories))
