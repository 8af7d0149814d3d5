"""The directory of a sharded index: it holds that of each shard, `shard-1-of-8` to `shard-8-of-8`, and no other file.

Passages are dealt out in turn: shard 2 of 8 has the second, the tenth, the eighteenth passage of the corpus. So shards
are of one size and hardly differ in their statistics, and a passage's number follows from its shard and place there.
A shard is a passage index of its own, whose info says what it is a part of.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from indexes.passage_index import INFO_FILE, check_compatible, read_info
from indexes.storage.atomic_files import resolve_replaced
from schemas.errors import InvalidInputError, MissingError
from schemas.records import IndexInfo

_NAME = re.compile(r"shard-\d+-of-(\d+)")
REMEDY = "Build it with `convagent index build PASSAGES... --shard {number}/{of} -o DIR`, or copy it there."


def name_shard(number: int, of: int) -> str:
    """The name of a shard's directory."""
    return f"shard-{number}-of-{of}"


def find_counts(directory: Path) -> set[int]:
    """How many shards there are by the names of those in a directory; more than one number if they do not fit."""
    found = (_NAME.fullmatch(path.name) for path in directory.glob("shard-*-of-*") if path.is_dir())
    return {int(name[1]) for name in found if name}


def is_sharded(directory: Path) -> bool:
    """Whether a directory holds shards, and is no index itself."""
    directory = resolve_replaced(directory)
    return not (directory / INFO_FILE).exists() and bool(find_counts(directory))


def holds_index(directory: Path) -> bool:
    """Whether there is an index in a directory, in one part or in shards."""
    return (resolve_replaced(directory) / INFO_FILE).is_file() or is_sharded(directory)


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
        check_compatible(info, path)
        if info.shard is None or (info.shard.number, info.shard.of) != (number, len(paths)):
            is_what = f"is shard {info.shard.number}/{info.shard.of}" if info.shard else "is no shard"
            raise InvalidInputError(is_what, where=str(path), remedy=REMEDY.format(number=number, of=len(paths)))
        for name, found, expected in zip(COMPARED, _compared(info), _compared(first), strict=True):
            if found != expected:
                what = f"does not belong to shard 1/{len(paths)}: another {name} ({found!r}, not {expected!r})"
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


COMPARED = ("analyzer", "segmentation", "version", "number of passages in the collection", "digest of the collection")


def _compared(info: IndexInfo) -> tuple[str | int, ...]:
    assert info.shard
    whole = info.shard.collection_passages, info.shard.collection_contents
    return info.analyzer, info.segmentation, info.made_by, *whole
