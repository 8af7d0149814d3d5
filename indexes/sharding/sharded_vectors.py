"""The compressed vectors of shards, searched as those of one index."""

from dataclasses import dataclass

import numpy as np

from indexes.ranking.compressed_vectors import CompressedVectors, Numbers, Rows
from indexes.ranking.vectors import Vectors


@dataclass(frozen=True, slots=True)
class ShardedVectors:
    """Those of shard i of n have the passages i, i + n, i + 2n and so on."""

    shards: tuple[CompressedVectors, ...]

    def find_nearest(self, query: Vectors, count: int, rows: Rows | None = None) -> tuple[Numbers, Vectors]:
        """As `NearestVectors` has it: the nearest of the nearest of each shard."""
        every = len(self.shards)
        found = [
            shard.find_nearest(query, count, None if rows is None else rows[first::every])
            for first, shard in enumerate(self.shards)
        ]
        numbers = np.concatenate([places * every + first for first, (places, _) in enumerate(found)])
        cosines = np.concatenate([cosines for _, cosines in found])
        best = np.lexsort((numbers, -cosines))[:count]
        return numbers[best], cosines[best]

    def score(self, numbers: Numbers, query: Vectors) -> Vectors:
        """As `NearestVectors` has it."""
        places, owners = np.divmod(numbers, len(self.shards))
        cosines = np.empty(len(numbers), dtype=np.float32)
        for first, shard in enumerate(self.shards):
            cosines[owners == first] = shard.score(places[owners == first], query)
        return cosines
