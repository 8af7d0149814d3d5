"""What the files of a directory were when it was made: their sizes and checksums, in a file beside them.

Sizes are compared whenever the directory is opened, which takes no time, and so is all of a small one; the contents of
a large one are compared where that is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from indexes.storage.files import hash_file
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
    files = {path.name: record_file(path) for path in paths}
    (directory / MANIFEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(files)))


def record_file(path: Path) -> FileRecord:
    return FileRecord(path.stat().st_size, hash_file(path, "blake2b"))


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
        if what := compare_file(directory / name, record, thorough=thorough):
            yield f"{name} {what}"


def compare_file(path: Path, record: FileRecord, *, thorough: bool = True) -> str:
    """What is wrong with a file, by its size and, where it is to be thorough, its contents; "" where nothing is."""
    try:
        size = path.stat().st_size
        if size != record.bytes:
            return f"has {size} bytes, not {record.bytes}"
        return "has other contents than it was given" if thorough and record_file(path) != record else ""
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
