"""Files that appear whole or not at all."""

import hashlib
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from indexes.storage.atomic_files import write_file_atomically
from schemas.errors import MissingError, RunError, UsageError
from schemas.wire import utf8


def read_utf8(path: Path) -> bytes:
    """A text file's contents without a byte order mark, or an error that names it."""
    return bytes(utf8(read_bytes(path), str(path)))


def read_bytes(path: Path) -> bytes:
    """A file's contents, or an error that names it."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise MissingError("no such file", where=str(path)) from error
    except OSError as error:
        raise MissingError(f"cannot be read ({error.strerror})", where=str(path)) from error


def check_writable(path: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, an output that is there already or cannot be made."""
    if path.is_dir():
        raise UsageError("is a directory; an output file is needed", where=str(path))
    if path.exists() and not path.is_file():  # a device, say, that a file would take the place of
        raise UsageError("is no ordinary file", where=str(path), remedy="Give another name with -o.")
    if path.exists() and not overwrite:
        raise UsageError("exists already", where=str(path), remedy="Give --overwrite, or another name with -o.")
    if not path.parent.is_dir():
        raise MissingError("no such directory", where=str(path.parent), remedy=f"mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise RunError("the directory cannot be written to", where=str(path.parent))


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Write through a temporary file beside `path`: the old contents stay until the new ones are safely on disk."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.writelines(chunks)

    try:
        write_file_atomically(path, write)
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(path)) from error


def map_file(path: Path) -> memoryview:
    """A text file's contents without a byte order mark, of which only what is looked at is in memory."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except ValueError:  # an empty file cannot be mapped
        return memoryview(b"")
    except FileNotFoundError as error:
        raise MissingError("no such file", where=str(path)) from error
    except OSError as error:
        raise MissingError(f"cannot be read ({error.strerror})", where=str(path)) from error
    return memoryview(utf8(data, str(path)))


def file_sha256(path: Path) -> str:
    """A file's SHA-256, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
