"""Making one index of shards: what they count together, and whether they belong together."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from indexes.passage_index import SHARDED_FORMAT, check_compatible, check_whole, read_info
from indexes.sharding.shard_files import (
    ShardPlace,
    ShardRecord,
    find_shards,
    identify_shard,
    read_shard_record,
    write_sharded_info,
)
from schemas.errors import InvalidInputError, MissingError
from schemas.records import IndexInfo, Sharding, ShardSummary

Shard = tuple[IndexInfo, ShardRecord]


def merge_statistics(directory: Path) -> IndexInfo:
    """Make one index of the shards in a directory, which stay as they are: the info of all together.

    How many passages have a word is asked of the shards with each query; lengths are what has to be known before.
    Raises `MissingError` where shards are not there, and `InvalidInputError` where they do not belong together.
    """
    places = _find_all(directory)
    shards = {place: _read_shard(path, place) for place, path in places.items()}
    _check_same_collection(directory, shards)
    first, record = next(iter(shards.values()))
    summaries = tuple(
        ShardSummary(info.passages, own.words, identify_shard(info, own)) for info, own in shards.values()
    )
    info = replace(
        first,
        passages=record.collection_passages,
        seconds=max(info.seconds for info, _ in shards.values()),
        format=SHARDED_FORMAT,
        contents=record.collection_contents,
        sharding=Sharding(summaries),
    )
    write_sharded_info(directory, info)
    return info


def _find_all(directory: Path) -> dict[ShardPlace, Path]:
    """The directories of all shards, in their order."""
    found = dict(find_shards(directory))
    remedy = "Build them with `convagent index build PASSAGES... --shard 1/N -o DIR`, or copy them there."
    if not found:
        raise MissingError("has no shards", where=str(directory), remedy=remedy)
    counts = {place.of for place in found}
    if len(counts) > 1:
        what = f"holds shards of indexes in {' and in '.join(map(str, sorted(counts)))} parts"
        raise InvalidInputError(what, where=str(directory), remedy="Move those of the others elsewhere.")
    places = [ShardPlace(number, max(counts)) for number in range(1, max(counts) + 1)]
    missing = [str(place) for place in places if place not in found]
    if missing:
        what = f"has not all shards: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there"
        raise MissingError(what, where=str(directory), remedy=remedy)
    return {place: found[place] for place in places}


def _read_shard(path: Path, place: ShardPlace) -> Shard:
    info, record = read_info(path), read_shard_record(path)
    check_compatible(info, path)
    check_whole(info, path)
    if record.place != place:
        raise InvalidInputError(f"is shard {record.place}", where=str(path), remedy="Give it back its name.")
    return info, record


def _check_same_collection(directory: Path, shards: Mapping[ShardPlace, Shard]) -> None:
    """Raise `InvalidInputError` for the first shard that was built otherwise than shard 1."""
    (first, expected), *_ = shards.values()
    for place, (info, record) in shards.items():
        compared = {
            "analyzer": (info.analyzer, first.analyzer),
            "segmentation": (info.segmentation, first.segmentation),
            "version": (info.made_by, first.made_by),
            "number of passages in the collection": (record.collection_passages, expected.collection_passages),
            "digest of the collection": (record.collection_contents, expected.collection_contents),
        }
        for name, (found, wanted) in compared.items():
            if found != wanted:
                what = f"does not belong to shard 1/{place.of}: another {name} ({found!r}, not {wanted!r})"
                remedy = "Build it again from the same passages, with the same options and version."
                raise InvalidInputError(what, where=str(directory / place.name), remedy=remedy)
