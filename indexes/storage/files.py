"""Reading and writing files, whole or line by line, with errors that name them; and what the files of a directory were.

A manifest beside them has their sizes and checksums as they were when the directory was made. Sizes are compared
whenever it is opened, which takes no time, and so is all of a small one; the contents of a large one are compared where
that is asked for.
"""

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from indexes.storage.atomic_files import lock_descriptor, write_file_atomically
from schemas.errors import MissingError, RunError, UsageError
from schemas.wire import decode, utf8


def read_utf8(path: Path) -> bytes:
    """A text file's contents without a byte order mark. Raises `MissingError` or `InvalidInputError`."""
    return bytes(utf8(read_bytes(path), str(path)))


def read_bytes(path: Path) -> bytes:
    with _explain_unreadable(path):
        return path.read_bytes()


def open_to_read(path: Path) -> IO[bytes]:
    with _explain_unreadable(path):
        return path.open("rb")


@contextmanager
def _explain_unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise MissingError(what, where=str(path)) from error


def check_writable(path: Path, overwrite: bool) -> None:
    """Raise an error, before any work is done, if an output file exists already or cannot be made."""
    if path.is_dir():
        raise UsageError("is a directory; an output file is needed", where=str(path))
    if path.exists() and not path.is_file():  # a device, for example, that a file would replace
        raise UsageError("is no ordinary file", where=str(path), remedy="Give another name with -o.")
    if path.exists() and not overwrite:
        raise UsageError("exists already", where=str(path), remedy="Give --overwrite, or another name with -o.")
    if not path.parent.is_dir():
        raise MissingError("no such directory", where=str(path.parent), remedy=f"mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise RunError("the directory cannot be written to", where=str(path.parent))


def write_atomically(path: Path, chunks: Iterable[bytes], *, private: bool = False) -> None:
    """Write a file as `write_file_atomically` does. Raises `RunError`."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.writelines(chunks)

    with explain_failed_writing(path):
        write_file_atomically(path, write, private=private)


@contextmanager
def explain_failed_writing(path: Path, remedy: str = "") -> Iterator[None]:
    """An `OSError` within the block becomes a `RunError` that names the path."""
    try:
        yield
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(path), remedy=remedy) from error


def write_json_atomically(path: Path, value: object) -> None:
    """A value as JSON for people to read, too. Raises `OSError`."""
    described = msgspec.json.format(msgspec.json.encode(value))
    write_file_atomically(path, lambda temporary: temporary.write_bytes(described))


def map_file(path: Path) -> memoryview:
    """A text file's contents without a byte order mark, read into memory only where they are used."""
    with _explain_unreadable(path), path.open("rb") as file:
        if not path.stat().st_size:  # an empty file cannot be mapped
            return memoryview(b"")
        return memoryview(utf8(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), str(path)))


def hash_file(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


@contextmanager
def open_to_append(path: Path, size: int, kind: str, remedy: str) -> Iterator[IO[bytes]]:
    """A file opened to go on after its first `size` bytes. Raises `UsageError` where another process is writing it."""
    with explain_failed_writing(path):
        file = path.open("ab", buffering=0)  # what a full disk did not take is not tried again on closing
    with file:
        with suppress(OSError):  # no such locks here
            if not lock_descriptor(file.fileno(), wait=False):
                raise UsageError(f"another process is writing this {kind}", where=str(path), remedy=remedy)
        file.truncate(size)
        yield file


def append_line(file: IO[bytes], line: bytes, remedy: str) -> None:
    """Write one line, whose end is added, and hand it to the disk. `remedy` is what to do where there is no room."""
    data = memoryview(line + b"\n")
    with explain_failed_writing(Path(file.name), remedy):
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())


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
    return decode((directory / MANIFEST_FILE).read_bytes(), dict[str, FileRecord])


def find_damage(directory: Path, *, thorough: bool) -> Iterator[str]:
    """Files that are not as they were: by their sizes, and, where it is to be thorough or all is small, contents."""
    try:
        files = read_manifest(directory)
    except (OSError, msgspec.DecodeError) as error:
        yield f"{MANIFEST_FILE} cannot be used: {error}"
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
    except OSError as error:
        return f"cannot be read ({error.strerror})"
