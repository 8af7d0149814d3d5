"""A connection as uvicorn handles it, with limits on time: for a request, and for a reader.

uvicorn ends a connection that is idle after a response, and nothing else: one that never asks, asks a byte at a time
or never reads stays for ever, until no file can be opened. Where there are too many, one that waits for a request
gives way; where all are at work, uvicorn's `limit_concurrency` turns the new one away.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0  # for a whole request, from its first byte (of the first: from the connection) to its last
READER_SECONDS = 30.0  # that a client may leave what it was sent unread
KEEP_ALIVE_SECONDS = 15  # that a connection may be idle after a response
GRACE_SECONDS = 1.0  # that a connection has to ask before it may give way to another
MAX_CONNECTIONS = 1000
RESERVED_FILES = 128  # of those that the process may open: for index, store and model, and connections turned away
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def count_allowed_connections() -> int:
    """How many connections there may be, once the process may open as many files as the system lets it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MAX_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + RESERVED_FILES
    if soft not in (-1, resource.RLIM_INFINITY) and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else max(min(MAX_CONNECTIONS, soft - RESERVED_FILES), 8)


class LimitedConnection(H11Protocol):
    """A connection with limits."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.idle_since: float | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle_since = time.monotonic()
        self._start_timer("request", REQUEST_SECONDS, self._end_slow_request)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._make_room(self.limit_concurrency)

    def connection_lost(self, exc: Exception | None) -> None:
        for name in tuple(self._timers):
            self._stop_timer(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_request()

    def on_response_complete(self) -> None:
        self.idle_since = time.monotonic()
        super().on_response_complete()
        if not self.transport.is_closing() and self.conn.their_state is not h11.IDLE:  # a request came meanwhile
            self._watch_request()

    def _watch_request(self) -> None:
        """Count the time of a request that is not here as a whole."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.idle_since = None
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._stop_timer("request")
        else:
            self._start_timer("request", REQUEST_SECONDS, self._end_slow_request)

    def _end_slow_request(self) -> None:
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self.transport.write(TOO_SLOW)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """As uvicorn does, where that can be said; in the middle of a response it cannot."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer("reader", READER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer("reader")

    def _start_timer(self, name: str, seconds: float, end: Callable[[], object]) -> None:
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, end)

    def _stop_timer(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()

    def _make_room(self, most: int) -> None:
        """Close connections that wait for a request, the longest first; this one where files run short and all work."""
        is_short = len(self.connections) > most + RESERVED_FILES // 2
        latest = time.monotonic() - (0 if is_short else GRACE_SECONDS)
        waiting = [
            (other.idle_since, other)
            for other in self.connections
            if isinstance(other, LimitedConnection) and other is not self and other.idle_since is not None
        ]
        idle = [other for since, other in sorted(waiting, key=lambda pair: pair[0]) if since <= latest]
        for other in idle[: len(self.connections) - most + 1]:
            other.transport.close()
            self.connections.discard(other)
        if is_short and not idle:
            self.transport.abort()
