"""Stdin and stdout for the protocol alone: whatever else prints, libraries in C and Rust included, goes to stderr."""

import asyncio
import json
import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO

STDIN, STDOUT, STDERR = 0, 1, 2
MAX_LINES = 100  # read ahead of what is being done
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class ProtocolStreams:
    """What was stdin and stdout when the program began. No process that is started from here has them."""

    input: BinaryIO
    output: TextIO


def keep_for_protocol() -> ProtocolStreams:
    """Take stdin and stdout, and leave nothing and stderr in their place.

    To be called before anything is loaded that might print. Raises `OSError` where one of them is closed.
    """
    input, output = os.dup(STDIN), os.dup(STDOUT)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, STDIN)
    try:
        os.dup2(STDERR, STDOUT)
    except OSError:  # stderr is closed
        os.dup2(nowhere, STDOUT)
    os.close(nowhere)
    return ProtocolStreams(os.fdopen(input, "rb"), os.fdopen(output, "w", encoding="utf-8", newline="\n"))


def replace_lone_surrogates(line: str) -> str:
    """A message in which no half of a character is escaped: the SDK would drop it, and its sender wait for ever."""
    if not _SURROGATE.search(line):
        return line
    try:
        message = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):  # the SDK says what is wrong with it
        return line
    return message.encode("utf-8", "replace").decode("utf-8")


@dataclass(slots=True)
class IncomingLines:
    """The lines of a stream as they come, read by a thread of its own: the program can end while it waits for one."""

    stream: BinaryIO
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _lines: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)
    _room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MAX_LINES))

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, name="reading stdin", daemon=True).start()

    def __aiter__(self) -> "IncomingLines":
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if not line:
            raise StopAsyncIteration
        self._room.release()
        return replace_lone_surrogates(line.decode("utf-8", "replace"))

    def _read(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: the program ends
            while line := self.stream.readline():
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, b"")
