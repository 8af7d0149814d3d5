"""What the files of a directory were when it was made: their sizes and checksums, in a file beside them.

Sizes are compared whenever the directory is opened, which takes no time, and so is all of a small one; the contents of
a large one are compared where that is asked for.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from schemas.wire import decode

MANIFEST_FILE = "convagent-manifest.json"
SMALL_BYTES = 1 << 25  # of all files together: these are read in the blink of an eye
LOCK_SUFFIX = ".lock"  # of files that say nothing by their contents


@dataclass(frozen=True, slots=True)
class FileRecord:
    bytes: int
    blake2b: str


def write_manifest(directory: Path) -> None:
    """Record all files of a directory as they are now. Raises `OSError` where that fails."""
    paths = sorted(path for path in directory.iterdir() if path.is_file() and path.suffix != LOCK_SUFFIX)
    files = {path.name: FileRecord(path.stat().st_size, hash_contents(path)) for path in paths}
    (directory / MANIFEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(files)))


def read_manifest(directory: Path) -> dict[str, FileRecord]:
    """The files of a directory by their names. Raises `OSError` and `msgspec.DecodeError`."""
    files: dict[str, FileRecord] = decode((directory / MANIFEST_FILE).read_bytes(), dict[str, FileRecord])
    return files


def find_damage(directory: Path, *, thorough: bool) -> Iterator[str]:
    """Files that are not as they were: by their sizes, and, where it is to be thorough or all is small, contents."""
    try:
        files = read_manifest(directory)
    except (OSError, msgspec.DecodeError) as error:
        gone = isinstance(error, FileNotFoundError)
        yield f"{MANIFEST_FILE} is not there" if gone else f"{MANIFEST_FILE} cannot be used: {error}"
        return
    thorough = thorough or sum(record.bytes for record in files.values()) <= SMALL_BYTES
    for name, record in files.items():
        if what := _compare_file(directory / name, record, thorough=thorough):
            yield f"{name} {what}"


def hash_contents(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _compare_file(path: Path, record: FileRecord, *, thorough: bool) -> str:
    try:
        size = path.stat().st_size
        if size != record.bytes:
            return f"has {size} bytes, not {record.bytes}"
        return "has other contents than it was given" if thorough and hash_contents(path) != record.blake2b else ""
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
