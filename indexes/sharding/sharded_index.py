"""An index in shards: each ranks its passages by its own statistics, and what they find is merged by score.

Its directory holds that of each shard, `shard-1-of-8` to `shard-8-of-8`, and no other file. Passages are dealt out in
turn: shard 2 of 8 has the second, the tenth, the eighteenth passage of the corpus. So shards are of one size and hardly
differ in their statistics, and a passage's number follows from its shard and place there. A shard is a passage index of
its own, whose info says what it is a part of. `open_index` and `verify_index` take any index.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from indexes.passage_index import INFO_FILE, Index, PassageIndex, check_whole, read_info
from indexes.ranking.compressed_vectors import check_compressed_vectors
from indexes.ranking.rankings import RankedNumbers, Rows
from indexes.ranking.vectors import check_vectors
from indexes.storage.atomic_files import resolve_replaced
from indexes.storage.files import FileRecord, read_manifest
from indexes.text.analysis import list_languages
from schemas.errors import InvalidInputError, MissingError
from schemas.records import IndexInfo, Passage

_NAME = re.compile(r"shard-\d+-of-(\d+)")
REMEDY = "Build it with `convagent index build PASSAGES... --shard {number}/{of} -o DIR`, or copy it there."


def name_shard(number: int, of: int) -> str:
    return f"shard-{number}-of-{of}"


def find_counts(directory: Path) -> set[int]:
    """How many shards there are by the names of those in a directory; more than one number if they do not fit."""
    found = (_NAME.fullmatch(path.name) for path in directory.glob("shard-*-of-*") if path.is_dir())
    return {int(name[1]) for name in found if name}


def holds_index(directory: Path) -> bool:
    """Whether a directory holds an index, whole or in shards."""
    directory = resolve_replaced(directory)
    return (directory / INFO_FILE).is_file() or bool(find_counts(directory))


def list_shards(directory: Path) -> list[Path]:
    """The directories of a sharded index's shards, in their order.

    Raises `MissingError` for the first that is not there, `InvalidInputError` for shards of several indexes.
    """
    counts = sorted(find_counts(directory))
    if len(counts) > 1:
        what = f"holds shards of indexes in {' and in '.join(map(str, counts))} parts"
        raise InvalidInputError(what, where=str(directory), remedy="Move those of the others elsewhere.")
    paths = [directory / name_shard(number, counts[0]) for number in range(1, counts[0] + 1)]
    for number, path in enumerate(paths, start=1):
        if not resolve_replaced(path).is_dir():
            remedy = REMEDY.format(number=number, of=counts[0])
            raise MissingError("this shard of the index is not there", where=str(path), remedy=remedy)
    return paths


def read_joined_info(paths: Sequence[Path]) -> IndexInfo:
    """What all shards hold together. Raises what `read_info` does, and `InvalidInputError` for one of another index."""
    infos = [read_info(path) for path in paths]
    first = infos[0]
    for number, (path, info) in enumerate(zip(paths, infos, strict=True), start=1):
        shard = info.shard
        if shard is None or (shard.number, shard.of) != (number, len(paths)):
            is_what = f"is shard {shard.number}/{shard.of}" if shard else "is no shard"
            raise InvalidInputError(is_what, where=str(path), remedy=REMEDY.format(number=number, of=len(paths)))
        if _identify_build(info) != _identify_build(first):
            what = f"does not belong to shard 1/{len(paths)}: it was built from other passages, or in another way"
            remedy = "Build it again from the same passages, with the same options and version."
            raise InvalidInputError(what, where=str(path), remedy=remedy)
    assert first.shard
    return replace(
        first,
        passages=first.shard.collection_passages,
        contents=first.shard.collection_contents,
        seconds=max(info.seconds for info in infos),
        shards=len(paths),
        shard=None,
    )


def _identify_build(info: IndexInfo) -> tuple[str, ...]:
    """What all shards of an index have in common."""
    assert info.shard
    return info.analyzer, info.segmentation, info.made_by, info.shard.collection_contents


class ShardedIndex(Index):
    """An index in shards, which are asked together: Tantivy searches without holding Python up."""

    def __init__(self, directory: Path) -> None:
        self.directory = resolve_replaced(directory)
        self.part_directories = list_shards(self.directory)
        self.info = read_joined_info(self.part_directories)
        self.languages = list_languages(self.info.analyzer)
        self._shards = [PassageIndex(part) for part in self.part_directories]
        self._every = len(self._shards)
        self._threads = ThreadPoolExecutor(self._every)
        held = [shard.dates.items() for shard in self._shards]
        self.dates = {place * self._every + number: date for number, of in enumerate(held) for place, date in of}

    def close(self) -> None:
        self._threads.shutdown()

    def rank(self, weights: Mapping[str, float], k: int, rows: Rows | None = None) -> RankedNumbers:
        wanted = [None if rows is None else rows[number :: self._every] for number in range(self._every)]
        found = self._threads.map(PassageIndex.rank, self._shards, self._weigh_alike(weights), repeat(k), wanted)
        numbered = (
            [(place * self._every + number, score) for place, score in ranked] for number, ranked in enumerate(found)
        )
        return list(islice(merge(*numbered, key=lambda hit: (-hit[1], hit[0])), k))

    def _weigh_alike(self, weights: Mapping[str, float]) -> list[dict[str, float]]:
        """The weights for each shard, with which its own idf of a term comes to that of the whole collection."""
        held = self._threads.map(PassageIndex.count_passages_with, self._shards, repeat([*weights]))
        counts = np.array(list(held), dtype=np.float64)
        idf = [_compute_idf(count, len(shard)) for count, shard in zip(counts, self._shards, strict=True)]
        weighed = np.array([*weights.values()]) * _compute_idf(counts.sum(axis=0), len(self)) / idf
        return [dict(zip(weights, each, strict=True)) for each in weighed.tolist()]

    def find_all(self, ids: Sequence[str]) -> dict[str, Passage]:
        found = self._threads.map(PassageIndex.find_all, self._shards, repeat(ids))
        return {id: passage for each in found for id, passage in each.items()}

    def get_ids(self, numbers: Sequence[int]) -> list[str]:
        places, shards = np.divmod(np.asarray(numbers, dtype=np.int64), self._every)
        asked = [places[shards == number].tolist() for number in range(self._every)]
        replies = [iter(ids) for ids in self._threads.map(PassageIndex.get_ids, self._shards, asked)]
        return [next(replies[number]) for number in shards.tolist()]


def _compute_idf(passages_with: npt.NDArray[np.float64], passages: int) -> npt.NDArray[np.float64]:
    """As BM25 has it in Tantivy."""
    return np.log1p((passages - passages_with + 0.5) / (passages_with + 0.5))


def open_index(directory: Path) -> Index:
    """The index in a directory, be it in shards or not.

    Raises `MissingError` where there is none or a shard is not there, and `InvalidInputError` where it is damaged.
    """
    found = resolve_replaced(directory)
    is_single = (found / INFO_FILE).exists() or not find_counts(found)
    return PassageIndex(directory) if is_single else ShardedIndex(directory)


@dataclass(frozen=True, slots=True)
class Verification:
    files: int
    bytes: int
    passages: int
    vectors: int  # 0 where the index has none
    compressed: bool  # whether they are compressed, too


def verify_index(directory: Path) -> Verification:
    """Compare all of an index with what was recorded when it was built.

    Raises `InvalidInputError` with the files that are damaged.
    """
    records: list[FileRecord] = []
    with closing(open_index(directory)) as index:
        for part in map(PassageIndex, index.part_directories):
            check_whole(part.directory, thorough=True)
            records += read_manifest(part.directory).values()
            for info in part.vector_infos:
                check_vectors(part.directory, info)
                if info.compressed:
                    check_compressed_vectors(part.directory, info.compressed)
        vectors, size = sum(info.passages for info in index.vector_infos), sum(record.bytes for record in records)
        compressed = any(info.compressed for info in index.vector_infos)
        return Verification(len(records), size, len(index), vectors, compressed)
