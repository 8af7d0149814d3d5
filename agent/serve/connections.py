"""uvicorn, and its connections with limits on time: for a request, and for a reader.

uvicorn ends a connection that is idle after a response, and nothing else: one that never asks, asks a byte at a time
or never reads stays for ever, until no file can be opened. Where there are too many, one that waits for a request
gives way; where all are at work, uvicorn's `limit_concurrency` turns the new one away.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0  # for a whole request, from its first byte (of the first: from the connection) to its last
READER_SECONDS = 30.0  # that a client may leave what it was sent unread
KEEP_ALIVE_SECONDS = 15  # that a connection may be idle after a response
SHUTDOWN_SECONDS = 2  # that open connections have to finish when the server ends
POLL_SECONDS = 0.1  # between two looks at whether the server is to end
BACKLOG = 512  # connections that wait to be taken
MAX_CONNECTIONS = 1000
RESERVED_FILES = 128  # of those that the process may open: for index, store and model, and connections turned away
log = logging.getLogger("convagent")
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
            self._make_room()

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
        is_begun = self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]
        if is_begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
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

    def _make_room(self) -> None:
        """Close the connection that waited longest for a request."""
        waiting = [
            (other.idle_since, other)
            for other in self.connections
            if isinstance(other, LimitedConnection) and other is not self and other.idle_since is not None
        ]
        if waiting:
            _, longest = min(waiting, key=lambda pair: pair[0])
            longest.transport.close()
            self.connections.discard(longest)


def run_server(
    app: ASGIApp,
    listening: socket.socket,
    on_start: Callable[[], object],
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Serve an application on a socket until Ctrl-C or SIGTERM, or until it is over; these end it in good order."""
    config = uvicorn.Config(
        app,
        http=LimitedConnection,
        loop="asyncio",
        ws="none",
        log_config=None,
        log_level="critical",  # errors are shown by the pages and by /v1
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here depends on what a proxy says
        backlog=BACKLOG,
        limit_concurrency=count_allowed_connections(),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = uvicorn.Server(config)

    async def end_when_over() -> None:
        while not is_over():
            await asyncio.sleep(POLL_SECONDS)
        server.should_exit = True

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(_report_loop_error)
        watching = asyncio.create_task(end_when_over())
        on_start()
        await server.serve(sockets=[listening])
        watching.cancel()

    with suppress(KeyboardInterrupt, SystemExit):  # uvicorn ends by itself, and passes the signal on
        asyncio.run(run())


def _report_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no request sees, in a line, such as a connection that could not be taken."""
    error = context.get("exception")
    log.warning("%s%s", context.get("message", "failed"), f" ({error})" if error else "", exc_info=None)
