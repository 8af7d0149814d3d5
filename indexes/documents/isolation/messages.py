"""What the two processes say to each other: JSON, each message after its length, and a file's bytes as they are.

What comes from the child is checked as it is decoded, and nothing in it can be run: its libraries read files of unknown
origin, so it is not trusted.
"""

import struct
from dataclasses import dataclass
from typing import IO, Literal

import msgspec

from indexes.documents.reading import ParsedDocument

_LENGTH = struct.Struct(">Q")  # bytes of what follows


class TooLongError(Exception):
    """A message is longer than it may be."""


def write_framed(stream: IO[bytes], data: bytes) -> None:
    """Write a message, without flushing. Raises `OSError` where nobody reads it."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)


def read_framed(stream: IO[bytes], most_bytes: int | None = None) -> bytes:
    """The next message. Raises `EOFError` after the last, or where it is cut off, `TooLongError` for a longer one."""
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    if most_bytes is not None and length > most_bytes:
        raise TooLongError
    return _read_exactly(stream, length)


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


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


class ReplyError(Exception):
    """The child said something that is no reply, or too long."""


def write_message(stream: IO[bytes], message: Request | Reply, data: bytes = b"") -> None:
    """Write a message, with a file's bytes after a request. Raises `OSError` where nobody reads it."""
    body = msgspec.json.encode(message)
    for part in (body, data) if isinstance(message, Request) else (body,):
        write_framed(stream, part)
    stream.flush()


def read_request(stream: IO[bytes]) -> tuple[Request, bytes]:
    """The next request and the file's bytes. Raises `EOFError` after the last."""
    return msgspec.json.decode(read_framed(stream), type=Request), read_framed(stream)


def read_reply(stream: IO[bytes], most_bytes: int) -> Reply:
    """The next reply. Raises `EOFError` where the child has ended, `ReplyError` for what is no reply or too long."""
    try:
        return msgspec.json.decode(read_framed(stream, most_bytes), type=Reply)
    except TooLongError as error:
        raise ReplyError(f"holds more than {most_bytes // 1_000_000} MB of text") from error
    except msgspec.DecodeError as error:
        raise ReplyError("its reader sent what is no document") from error
