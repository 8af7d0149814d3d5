"""Opening an index, whether it is in one part or in shards."""

from pathlib import Path

from indexes.passage_index import Index, PassageIndex
from indexes.sharding.shard_files import is_sharded
from indexes.sharding.sharded_index import Connect, ShardedIndex, ShardsHere


def open_index(directory: Path, connect: Connect = ShardsHere) -> Index:
    """The index in a directory; if it is in shards, `connect` says how these are asked.

    Raises `MissingError` where there is none or a shard is not there, and `InvalidInputError` where it is damaged.
    """
    return ShardedIndex(directory, connect) if is_sharded(directory) else PassageIndex(directory)
