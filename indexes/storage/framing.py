"""Messages in a stream of bytes, each after its length."""

import struct
from typing import IO

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
