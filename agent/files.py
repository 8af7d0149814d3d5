"""Files that appear whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from schemas.errors import MissingError, RunError, UsageError


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
    if path.exists() and not overwrite:
        raise UsageError("exists already", where=str(path), remedy="Give --overwrite, or another name with -o.")
    if not path.parent.is_dir():
        raise MissingError("no such directory", where=str(path.parent), remedy=f"mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise RunError("the directory cannot be written to", where=str(path.parent))


def write_whole(path: Path, data: bytes) -> None:
    """Write through a temporary file beside `path`: the old contents stay until the new ones are safely on disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
