"""The files of a sharded index: a directory for each shard, and beside them the info of all together.

Passages are dealt out in turn: shard 2 of 8 has the second, the tenth, the eighteenth passage of the corpus. So shards
are of one size and hardly differ in their statistics, and a passage's number follows from its shard and place there.
A shard is a passage index of its own, with `convagent-shard.json` beside its other files.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from indexes.passage_index import INFO_FILE, SHARD_PATTERN
from indexes.storage.atomic_files import write_file_atomically
from schemas.errors import InvalidInputError, MissingError, UsageError
from schemas.records import IndexInfo
from schemas.wire import decode

SHARD_FILE = "convagent-shard.json"
MAX_SHARDS = 1000
_NAME = re.compile(r"shard-(\d+)-of-(\d+)")
_PLACE = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Which of how many shards one is."""

    number: int  # from 1
    of: int

    @classmethod
    def parse(cls, text: str) -> "ShardPlace":
        """A place as it is written, `3/8`. Raises `UsageError`."""
        found = _PLACE.fullmatch(text)
        if not found or not 1 <= int(found[1]) <= int(found[2]) <= MAX_SHARDS:
            remedy = f"Give which of how many, as in --shard 3/8; at most {MAX_SHARDS}."
            raise UsageError(f"{text!r} is no shard", remedy=remedy)
        return cls(int(found[1]), int(found[2]))

    @property
    def name(self) -> str:
        """The name of its directory."""
        return f"shard-{self.number}-of-{self.of}"

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """What a shard says about itself and the collection that it is a part of (`convagent-shard.json`)."""

    place: ShardPlace
    words: int  # stems in its passages
    collection_passages: int
    collection_contents: str  # a digest of all passages of the collection in their order (`IndexInfo.contents`)


def find_shards(directory: Path) -> Iterator[tuple[ShardPlace, Path]]:
    """The directories of shards, in no order."""
    for path in directory.glob(SHARD_PATTERN):
        if path.is_dir() and (found := _NAME.fullmatch(path.name)):
            yield ShardPlace(int(found[1]), int(found[2])), path


def list_shard_directories(directory: Path, info: IndexInfo) -> list[Path]:
    """The directories of a sharded index's shards, in their order."""
    assert info.sharding is not None
    count = len(info.sharding.shards)
    return [directory / ShardPlace(number, count).name for number in range(1, count + 1)]


def write_shard_record(directory: Path, record: ShardRecord) -> None:
    """Say what shard a directory is."""
    (directory / SHARD_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(record)))


def read_shard_record(directory: Path) -> ShardRecord:
    """What a shard says about itself. Raises `MissingError`, `InvalidInputError`."""
    try:
        record: ShardRecord = decode((directory / SHARD_FILE).read_bytes(), ShardRecord)
        return record
    except OSError as error:
        raise MissingError(f"is no shard (it has no {SHARD_FILE})", where=str(directory)) from error
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is a damaged shard ({error})", where=str(directory)) from error


def identify_shard(info: IndexInfo, record: ShardRecord) -> str:
    """A digest of what a shard holds; it is the same where the shard is built again from the same passages."""
    return hashlib.blake2b(f"{info.contents} {record}".encode(), digest_size=16).hexdigest()


def write_sharded_info(directory: Path, info: IndexInfo) -> None:
    """Write the info of a sharded index, whole or not at all, with its seal."""
    assert info.sharding is not None
    sealed = replace(info, sharding=replace(info.sharding, seal=_make_seal(info)))
    encoded = msgspec.json.format(msgspec.json.encode(sealed))
    write_file_atomically(directory / INFO_FILE, lambda temporary: temporary.write_bytes(encoded))


def is_sealed(info: IndexInfo) -> bool:
    """Whether the info of a sharded index is as it was written."""
    return info.sharding is not None and info.sharding.seal == _make_seal(info)


def _make_seal(info: IndexInfo) -> str:
    assert info.sharding is not None
    unsealed = replace(info, sharding=replace(info.sharding, seal=""))
    return hashlib.blake2b(msgspec.json.encode(unsealed), digest_size=16).hexdigest()
