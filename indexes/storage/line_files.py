"""Files that grow line by line, each handed to the disk at once: who is killed loses at most the line in hand."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from indexes.storage.atomic_files import lock_descriptor
from schemas.errors import RunError, UsageError


@contextmanager
def open_to_append(path: Path, size: int, kind: str, remedy: str) -> Iterator[IO[bytes]]:
    """A file opened to go on after its first `size` bytes. Raises `UsageError` where another process is writing it."""
    try:
        file = path.open("ab", buffering=0)  # what a full disk did not take is not tried again on closing
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(path)) from error
    with file:
        _lock_file(file, f"another process is writing this {kind}", remedy)
        file.truncate(size)
        yield file


def append_line(file: IO[bytes], line: bytes, remedy: str) -> None:
    """Write one line, whose end is added, and hand it to the disk. `remedy` is what to do where there is no room."""
    data = memoryview(line + b"\n")
    try:
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(file.name), remedy=remedy) from error


def _lock_file(file: IO[bytes], what: str, remedy: str) -> None:
    try:
        if lock_descriptor(file.fileno(), wait=False):
            return
    except OSError:  # no such locks here
        return
    raise UsageError(what, where=str(file.name), remedy=remedy)
