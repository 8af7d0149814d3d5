"""Whether an index is, byte by byte, what was built: every file by its checksum, every vector a number."""

from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

from indexes.passage_index import PassageIndex, check_whole
from indexes.ranking.compressed_vectors import check_compressed_vectors
from indexes.ranking.vectors import check_vectors
from indexes.sharding.sharded_index import open_index
from indexes.storage.manifest import read_manifest


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared, and found to be as it was built."""

    files: int
    bytes: int
    passages: int
    vectors: int  # 0 where the index has none
    compressed: bool  # whether they are compressed, too


def verify_index(directory: Path) -> Verification:
    """Compare all of an index with what was recorded when it was built.

    Raises `InvalidInputError` with the files that are damaged.
    """
    with closing(open_index(directory)) as index:
        parts = [_verify_passage_index(PassageIndex(part)) for part in index.part_directories]
    return Verification(*(sum(counts) for counts in zip(*map(astuple, parts), strict=True)))


def _verify_passage_index(index: PassageIndex) -> Verification:
    check_whole(index.directory, thorough=True)
    if index.vector_info:
        check_vectors(index.directory, index.vector_info)
    if index.compressed_info:
        check_compressed_vectors(index.directory, index.compressed_info)
    records = read_manifest(index.directory).files.values()
    vectors = index.vector_info.passages if index.vector_info else 0
    size = sum(record.bytes for record in records)
    return Verification(len(records), size, len(index), vectors, bool(index.compressed_info))
