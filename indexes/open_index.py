"""Opening an index, whether it is in one part or in shards."""

from pathlib import Path

from indexes.passage_index import Index, PassageIndex, read_info
from indexes.sharding.shard_transport import Connect, connect_shards
from indexes.sharding.sharded_index import ShardedIndex


def open_index(directory: Path, connect: Connect = connect_shards) -> Index:
    """The index in a directory; if it is in shards, `connect` says how these are asked.

    Raises `MissingError` where there is none or a shard is not there, and `InvalidInputError` where it is damaged.
    """
    return ShardedIndex(directory, connect) if read_info(directory).sharding else PassageIndex(directory)
