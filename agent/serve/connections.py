"""The socket, and uvicorn with limits on time: for a request, and for a reader.

uvicorn ends a connection that is idle after a response, and nothing else: one that never asks, asks a byte at a time
or never reads stays for ever, until no file can be opened. Where there are too many, one that waits for a request
gives way; where all are at work, uvicorn's `limit_concurrency` turns the new one away.
"""

import asyncio
import errno
import logging
import resource
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from schemas.errors import RunError

REQUEST_SECONDS = 20.0  # for a whole request, from its first byte (of the first: from the connection) to its last
READER_SECONDS = 30.0  # that a client may leave what it was sent unread
KEEP_ALIVE_SECONDS = 15  # that a connection may be idle after a response
SHUTDOWN_SECONDS = 2  # that open connections have to finish when the server ends
BACKLOG = 512  # connections that wait to be taken
MAX_CONNECTIONS = 1000
RESERVED_FILES = 128  # of those that the process may open: for index, store and model, and connections turned away
log = logging.getLogger("convagent")
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens, to be opened before anything slow. Port 0 takes a free one.

    Raises `RunError` where the port is taken, or the address is none of this machine.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            what, remedy = "is in use", "Give --port another number (0 takes a free one), or end what uses it."
        else:
            what, remedy = f"cannot be listened on ({error.strerror})", "Give another --host or --port."
        raise RunError(what, where=f"{host}:{port}", remedy=remedy) from error


def to_url(host: str, listening: socket.socket) -> str:
    """The address of the pages, with the port that the socket got."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/"


def count_allowed_connections() -> int:
    """How many connections there may be, once the process may open as many files as the system lets it."""
    wanted, (soft, hard) = MAX_CONNECTIONS + RESERVED_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < wanted:  # less than 0 is no limit
        soft = min(hard, wanted) if hard >= 0 else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(min(MAX_CONNECTIONS, soft - RESERVED_FILES), 8) if soft >= 0 else MAX_CONNECTIONS


class LimitedConnection(H11Protocol):
    """A connection with limits. What its client does is looked at once a second."""

    seen: tuple[object, ...] = ()  # the request, whether the client still sends it, and how much it has not read
    since = 0.0  # when that began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = time.monotonic()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._make_room()

    @property
    def is_at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def end_if_slow(self, now: float) -> None:
        """Close it where its client takes too long: to send a request, or to read on."""
        is_begun = self.conn.their_state is h11.SEND_BODY or (bool(self.conn.trailing_data[0]) and not self.is_at_work)
        is_sending, unread = is_begun or self.cycle is None, self.transport.get_write_buffer_size()
        if (seen := (self.cycle, is_sending, unread)) != self.seen:
            self.seen, self.since = seen, self.since if self.cycle is None else now
        elif unread and now - self.since > READER_SECONDS:
            self.transport.abort()
        elif is_sending and now - self.since > REQUEST_SECONDS and not self.transport.is_closing():
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

    def _make_room(self) -> None:
        """Close the connection that waited longest for a request."""
        others = [other for other in self.connections if isinstance(other, LimitedConnection) and other is not self]
        if waiting := [other for other in others if not other.is_at_work]:
            longest = min(waiting, key=lambda other: other.since)
            longest.transport.close()
            self.connections.discard(longest)


def run_server(
    app: ASGIApp,
    listening: socket.socket,
    on_start: Callable[[], object],
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Serve an application on a socket until Ctrl-C or SIGTERM, or until it is over; these end it in good order."""

    async def look_around() -> None:
        if is_over():  # and not `|=`, which would undo what a signal sets meanwhile
            server.should_exit = True
        for connection in tuple(server.server_state.connections):
            if isinstance(connection, LimitedConnection):
                connection.end_if_slow(time.monotonic())

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
        callback_notify=look_around,
        timeout_notify=0,  # at each look that uvicorn takes, once a second
    )
    server = uvicorn.Server(config)

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(_report_loop_error)
        on_start()
        await server.serve(sockets=[listening])

    with suppress(KeyboardInterrupt, SystemExit):  # uvicorn ends by itself, and passes the signal on
        asyncio.run(run())


def _report_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no request sees, in a line, such as a connection that could not be taken."""
    error = context.get("exception")
    log.warning("%s%s", context.get("message", "failed"), f" ({error})" if error else "", exc_info=None)
