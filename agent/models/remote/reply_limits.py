"""How long a server's reply may take as a whole, and how large it may be: a deadline and a bound for each attempt.

The client's own time-outs are for one read: a server that sends a byte a second would be waited for for ever. Its
transport is kept to the deadline by hooks that it documents: the connection is ended when the time is over, and when
the answer is no longer wanted.
"""

import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from agent.models.cancellation import CancellationToken

MAX_REPLY_BYTES = 1 << 24  # unpacked
UNPACKED_AT_ONCE = 1 << 16
ACCEPTED_ENCODINGS = "gzip, deflate"


class TooLargeError(Exception):
    """A reply of more bytes than any has."""


class ExpiredError(Exception):
    """A reply that was ended because its time was over."""


class PackingError(Exception):
    """A reply that is packed in a way that was not asked for, or badly."""


class ReplyLimits:
    """The limits of one client's replies, of which there is one at a time.

    `token` is that of the answer for which the server is asked.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.expired, self.reply_began = seconds, False, False
        self.requests = 0  # that were begun
        self.token = CancellationToken()
        self._socket: socket.socket | None = None
        self._timer: threading.Timer | None = None

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the reply any more."""
        return self.expired or self.token.is_cancelled

    def begin(self, request: Any) -> None:
        """A hook for requests: from now on so many seconds."""
        self.end()
        self.expired = self.reply_began = False
        self.requests += 1
        request.headers["Accept-Encoding"] = ACCEPTED_ENCODINGS
        request.extensions["trace"] = self._follow_connection
        self._timer = threading.Timer(self.seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def bound_reply(self, response: Any) -> None:
        """A hook for responses: what is read of this one is bounded, and unpacked as it is read."""
        self.reply_began = True
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        response.stream = _make_bounded(response.stream, encoding, self)

    def end(self) -> None:
        """Nothing is waited for any more."""
        if self._timer:
            self._timer.cancel()

    def _follow_connection(self, event: str, details: dict[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):  # TLS takes the socket over
            self._socket = details["return_value"].get_extra_info("socket")
            if self.is_over:  # before there was a connection to end
                self.end_connection()

    def _expire(self) -> None:
        self.expired = True
        self.end_connection()

    def end_connection(self) -> None:
        """End it from another thread: who sends or reads fails at once."""
        if self._socket is not None:
            with suppress(OSError):  # ended already; a TLS socket's own `shutdown` would disturb who reads it
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _make_bounded(stream: Any, encoding: str, limits: ReplyLimits) -> Any:
    """The stream of a reply, bounded. The client wants one of its transport's own kind."""
    kind: Any = next(base for base in type(stream).__mro__ if base.__name__ == "SyncByteStream")

    class BoundedStream(kind):  # type: ignore[misc]  # known only when it is there
        def __iter__(self) -> Iterator[bytes]:
            total = 0
            for chunk in _unpack(stream, encoding):
                total += len(chunk)
                if total > MAX_REPLY_BYTES:
                    raise TooLargeError(f"it has more than {MAX_REPLY_BYTES >> 20} MB")
                if limits.is_over:  # what came before may be much, and slow to read
                    break
                yield chunk
            limits.token.raise_if_cancelled()  # to the transport it may look like the end
            if limits.expired:
                raise ExpiredError

        def close(self) -> None:
            limits.end()
            stream.close()

    return BoundedStream()


def _unpack(chunks: Any, encoding: str) -> Iterator[bytes]:
    """What packed chunks hold, a little at a time: a few bytes may stand for gigabytes."""
    if encoding in ("identity", ""):
        yield from chunks
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise PackingError(f"it is packed as {encoding[:40]!r}, which was not asked for")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        for chunk in chunks:
            while chunk and not unpacker.eof:
                yield unpacker.decompress(chunk, UNPACKED_AT_ONCE)
                chunk = unpacker.unconsumed_tail
        yield unpacker.flush()
    except zlib.error as error:
        raise PackingError(f"it cannot be unpacked ({error})") from None
