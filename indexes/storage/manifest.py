"""What the files of a directory were when it was made: their sizes and checksums, in a file beside them.

Sizes are compared whenever the directory is opened, which takes no time, and so is all of a small one; the contents of
a large one are compared where that is asked for.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from schemas.errors import InvalidInputError
from schemas.records import Problem
from schemas.wire import decode

MANIFEST_FILE = "convagent-manifest.json"
VERSION = 1
SMALL_BYTES = 1 << 25  # of all files together: these are read in the blink of an eye
LOCK_SUFFIX = ".lock"  # of files that say nothing by their contents


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What is known of a file."""

    bytes: int
    blake2b: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a directory by their names."""

    files: dict[str, FileRecord]
    version: int = VERSION


def write_manifest(directory: Path) -> None:
    """Record all files of a directory as they are now. Raises `OSError` where that fails."""
    paths = sorted(path for path in directory.iterdir() if path.is_file() and path.suffix != LOCK_SUFFIX)
    files = {path.name: FileRecord(path.stat().st_size, hash_contents(path)) for path in paths}
    (directory / MANIFEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(Manifest(files))))


def read_manifest(directory: Path) -> Manifest:
    """What was recorded. Raises `InvalidInputError` where it is damaged, and `OSError` where it cannot be read."""
    path = directory / MANIFEST_FILE
    try:
        found: Manifest = decode(path.read_bytes(), Manifest)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is damaged ({error})", where=str(path)) from error
    if found.version != VERSION:
        raise InvalidInputError(f"is of another version ({found.version})", where=str(path))
    return found


def find_damage(directory: Path, manifest: Manifest, *, thorough: bool) -> Iterator[Problem]:
    """Files that are not as they were: by their sizes, and, where it is to be thorough or all is small, contents."""
    thorough = thorough or is_small(manifest)
    for name, record in manifest.files.items():
        what = _compare_file(directory / name, record, thorough=thorough)
        if what:
            yield Problem(name, what)


def is_small(manifest: Manifest) -> bool:
    """Whether the contents of all files are compared at once."""
    return sum(record.bytes for record in manifest.files.values()) <= SMALL_BYTES


def hash_contents(path: Path) -> str:
    """The BLAKE2 of a file, of 256 bits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _compare_file(path: Path, record: FileRecord, *, thorough: bool) -> str:
    """What is wrong with a file; empty where nothing is."""
    try:
        size = path.stat().st_size
        if size != record.bytes:
            return f"has {size} bytes, not {record.bytes}"
        return "has other contents than it was given" if thorough and hash_contents(path) != record.blake2b else ""
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
