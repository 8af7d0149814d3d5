"""An index in shards, searched as one: its scores and rankings are those of a single index of the same passages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from indexes.passage_index import Index, PassageIndex, check_compatible, read_info
from indexes.ranking.bm25 import CollectionSize
from indexes.ranking.compressed_vectors import CompressedInfo
from indexes.ranking.exact_ranking import Collection, RankedNumbers, Rows
from indexes.ranking.vectors import VectorInfo, Vectors, read_vectors
from indexes.sharding.shard_files import is_sealed, list_shard_directories
from indexes.sharding.shard_transport import Connect, connect_shards
from indexes.sharding.sharded_vectors import ShardedVectors
from indexes.storage.atomic_files import resolve_replaced
from indexes.text.analysis import list_languages
from schemas.errors import InvalidInputError
from schemas.records import Passage


class ShardedIndex(Index):
    """An index whose shards are asked by what `connect` makes of their directories."""

    def __init__(self, directory: Path, connect: Connect = connect_shards) -> None:
        self.directory = directory = resolve_replaced(directory)
        self.info = read_info(directory)
        check_compatible(self.info, directory)
        if self.info.sharding is None or not is_sealed(self.info):
            remedy = f"Run `convagent index merge-statistics {directory}`."
            raise InvalidInputError("has a damaged description of its shards", where=str(directory), remedy=remedy)
        self.languages = list_languages(self.info.analyzer)
        self.part_directories = list_shard_directories(directory, self.info)
        self._transport = connect(self.part_directories, len(self))
        self._check_identity([shard.digest for shard in self.info.sharding.shards])
        sizes = [CollectionSize.count(shard.passages, shard.words) for shard in self.info.sharding.shards]
        words = sum(shard.words for shard in self.info.sharding.shards)
        self._collection = Collection(self._transport.ask, tuple(sizes), CollectionSize.count(len(self), words))
        self.dates = {
            self._number(place, shard): date
            for shard, dates in enumerate(self._ask_all("dates"))
            for place, date in dates.items()
        }

    def close(self) -> None:
        self._transport.close()

    def _check_identity(self, expected: Sequence[str]) -> None:
        for directory, found, wanted in zip(self.part_directories, self._ask_all("digest"), expected, strict=True):
            if found != wanted:
                remedy = f"Run `convagent index merge-statistics {self.directory}` again."
                what = "this shard is not the one whose statistics were merged"
                raise InvalidInputError(what, where=str(directory), remedy=remedy)

    def _ask_all(self, question: str, *arguments: Any) -> list[Any]:
        """What each shard replies."""
        replies = self._transport.ask(question, dict.fromkeys(range(len(self.part_directories)), arguments))
        return [replies[shard] for shard in range(len(self.part_directories))]

    def _number(self, place: int, shard: int) -> int:
        """The number of the passage at a place in a shard."""
        return place * len(self.part_directories) + shard

    @cached_property
    def shard_vector_infos(self) -> list[VectorInfo | None]:
        """What the vectors of each shard are made with; None of those that have none."""
        return self._ask_all("vector_info")

    @cached_property
    def vector_info(self) -> VectorInfo | None:
        infos = [info for info in self.shard_vector_infos if info]
        if len(infos) < len(self.part_directories):
            return None
        first, blocks = infos[0], tuple(block for info in infos for block in info.blocks)
        if any(info.digest != first.digest for info in infos):
            remedy = "Make them again with `convagent index embed`."
            raise InvalidInputError("has vectors of several models", where=str(self.directory), remedy=remedy)
        return VectorInfo(first.model, first.digest, first.size, len(self), self.info.contents, blocks)

    @cached_property
    def vectors(self) -> Vectors | None:
        if self.vector_info is None:
            return None
        vectors = np.empty((len(self), self.vector_info.size), dtype=np.float32)
        for shard, info in enumerate(self.shard_vector_infos):
            assert info is not None
            vectors[shard :: len(self.part_directories)] = read_vectors(self.part_directories[shard], info)
        return vectors

    @cached_property
    def compressed_info(self) -> CompressedInfo | None:
        found: list[CompressedInfo] = list(filter(None, self._ask_all("compressed_info")))
        if self.vector_info is None or len(found) < len(self.part_directories):
            return None
        seals, checksums = "".join(info.vectors for info in found), "".join(info.blake2b for info in found)
        size = sum(info.bytes for info in found)
        return replace(found[0], vectors=seals, passages=len(self), bytes=size, blake2b=checksums)

    @cached_property
    def compressed_vectors(self) -> ShardedVectors | None:
        if self.compressed_info is None:
            return None
        opened = [PassageIndex(directory).compressed_vectors for directory in self.part_directories]
        return ShardedVectors(tuple(vectors for vectors in opened if vectors))

    def rank(self, weights: Mapping[str, float], k: int, rows: Rows | None = None) -> RankedNumbers:
        return self._collection.rank(weights, k, rows)

    def find_all(self, ids: Sequence[str]) -> dict[str, Passage]:
        return {id: found for each in self._ask_all("find_all", list(ids)) for id, found in each.items()}

    def get_ids(self, numbers: Sequence[int]) -> list[str]:
        places, shards = np.divmod(np.asarray(numbers, dtype=np.int64), len(self.part_directories))
        asked = {shard: (places[shards == shard].tolist(),) for shard in np.unique(shards).tolist()}
        replies = {shard: iter(ids) for shard, ids in self._transport.ask("get_ids", asked).items()}
        return [next(replies[shard]) for shard in shards.tolist()]
