"""The child process: reads the files that it is sent, one at a time, until nobody sends any more.

`process.py` starts it, with the bytes of memory that it may have and a directory for temporary files. It needs no other
file, no network and no secret: files come as bytes on its standard input, and what came of them leaves on its standard
output. A message is JSON after its length; a file's bytes follow as they are. What the child says is checked as it is
decoded, and nothing in it can be run: its libraries read files of unknown origin, so it is not trusted.
"""

import math
import os
import queue
import resource
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Literal

import msgspec

from indexes.documents.formats.pages import page_listener
from indexes.documents.reading import ParsedDocument, parse_document
from schemas.errors import MissingError

MAX_FILE_BYTES = 500_000_000  # of a file that is written, such as a picture for Tesseract
LENGTH_BYTES = 8  # before each part of a message


@dataclass(frozen=True, slots=True)
class Request:
    """A file to be read; its bytes follow."""

    path: bytes  # as the file system has it
    name: str  # as ids have it
    alarm_seconds: int  # after which the child ends by itself, in case nobody is left to end it


@dataclass(frozen=True, slots=True)
class Reply:
    """What the child says: that it is ready, that it begins a page that takes long, or what came of a file."""

    kind: Literal["ready", "page", "document", "missing", "memory", "failed"]
    document: ParsedDocument | None = None
    what: str = ""  # is missing, or what failed


def write_message(stream: IO[bytes], message: Request | Reply, *data: bytes) -> None:
    """Write a message as JSON, with a file's bytes after a request. Raises `OSError` where nobody reads it."""
    for part in (msgspec.json.encode(message), *data):
        stream.write(len(part).to_bytes(LENGTH_BYTES))
        stream.write(part)
    stream.flush()


def read_framed(stream: IO[bytes], most_bytes: float = math.inf) -> bytes:
    """The next part of a message. Raises `EOFError` after the last, or where it is cut off, `ValueError` if longer."""
    length = int.from_bytes(_read_exactly(stream, LENGTH_BYTES))
    if length > most_bytes:
        raise ValueError
    return _read_exactly(stream, length)


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def read_request(stream: IO[bytes]) -> tuple[Request, bytes]:
    """The next request and the file's bytes. Raises `EOFError` after the last."""
    return msgspec.json.decode(read_framed(stream), type=Request), read_framed(stream)


Requests = queue.SimpleQueue[tuple[Request, bytes]]


def main() -> None:
    memory, home = int(sys.argv[1]), sys.argv[2]
    Path(home).mkdir(0o700)
    tempfile.tempdir = home  # a library may have looked for one before
    _set_limits(memory)
    requests, replies = _take_over_streams()
    waiting: Requests = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, waiting, home), daemon=True).start()
    try:
        write_message(replies, Reply("ready"))
        while True:
            request, data = waiting.get()
            write_message(replies, _read_document(request, data, replies))
    except OSError:  # nobody hears it any more, which this thread may notice before the other
        shutil.rmtree(home, ignore_errors=True)


def _set_limits(memory_bytes: int) -> None:
    """Have the system refuse more, where it does so.

    Linux counts what can be written to (RLIMIT_DATA), not what is mapped from files; macOS ignores that limit.
    """
    limits = {
        resource.RLIMIT_DATA: memory_bytes,
        resource.RLIMIT_FSIZE: MAX_FILE_BYTES,
        resource.RLIMIT_CORE: 0,  # no image of a person's documents on the disk
    }
    for limit, most in limits.items():
        with suppress(OSError, ValueError):  # a stricter one is set already
            resource.setrlimit(limit, (most, most))


def _take_over_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for messages alone: what a library prints or asks for goes nowhere."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return requests, replies


def _receive(requests: BinaryIO, waiting: Requests, home: str) -> None:
    """Receive files; end the process at once, with what it started, where the one that sent them is gone."""
    try:
        while True:
            waiting.put(read_request(requests))
    except BaseException:  # whatever it is: without requests there is nothing to do
        shutil.rmtree(home, ignore_errors=True)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _read_document(request: Request, data: bytes, replies: BinaryIO) -> Reply:
    def begin_page() -> None:
        signal.alarm(request.alarm_seconds)
        write_message(replies, Reply("page"))

    page_listener.set(begin_page)
    signal.alarm(request.alarm_seconds)
    try:
        document = parse_document(Path(os.fsdecode(request.path)), request.name, data)
    except MissingError as error:
        return Reply("missing", what=error.what)
    except MemoryError:
        return Reply("memory")
    except Exception as error:  # a fault of the reader
        return Reply("failed", what=type(error).__name__)
    finally:
        signal.alarm(0)
    return Reply("document", document)


if __name__ == "__main__":
    main()
