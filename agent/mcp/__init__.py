"""The documents as tools of other programs, over the Model Context Protocol: on stdin and stdout, or on a port."""

import logging
import os
import signal
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from agent.mcp.library import Library
from schemas.errors import MissingError, UsageError

if TYPE_CHECKING:
    from agent.mcp.tools import DocumentServer

HOST, PATH = "127.0.0.1", "/mcp"
COOKIE = "convagent-mcp"  # which nobody is given: clients send the token
MAX_SESSIONS = 100
log = logging.getLogger("convagent")


def serve_on_stdio(library: Library) -> None:
    """Serve the program that started this one, until it closes stdin.

    The SDK takes the two streams for the protocol alone: whatever else prints, libraries in C and Rust included, goes
    to stderr.
    """
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("stdin or stdout is closed", remedy="Clients start this command; --http listens on a port.")
    if sys.stdin.isatty():
        log.info("Waiting for a client on stdin; clients start this command themselves. --http listens on a port.")
    with closing(library):
        server = load_server(library)
        for number in (signal.SIGINT, signal.SIGTERM):  # a thread that waits in `read` would hold up any other end
            signal.signal(number, lambda sent, _frame: os._exit(128 + sent))
        try:
            server.run()
        except* BrokenPipeError:  # the client is gone
            pass


def serve_on_port(library: Library, port: int) -> None:
    """Serve programs of this machine that send the token, until Ctrl-C or SIGTERM.

    The guard is that of `serve`, which also turns away other sites. The token is that of the last start, so that
    settings of clients go on working; incognito another one each time. Both are said on stderr, however quiet it is to
    be. Raises `RunError` where the port is taken, and what `find_own_token` raises.
    """
    with closing(library):
        server = load_server(library)
        from agent.serve.connections import open_socket, run_server, to_url
        from agent.serve.request_guard import RequestGuard
        from agent.serve.users import Access, find_own_token, hash_token, make_token
        from indexes.storage.directories import find_data_directory

        kept = find_data_directory() / "mcp-token"
        token = make_token() if library.asked.incognito else find_own_token(kept, anew=False)
        app = server.streamable_http_app(streamable_http_path=PATH, host=HOST, max_sessions=MAX_SESSIONS)
        guard = RequestGuard(Access(hash_token(token)), COOKIE, api_path="")
        with open_socket(HOST, port) as listening:
            url = f"{to_url(HOST, listening).rstrip('/')}{PATH}"
            said = f"convagent: listening at {url}; Ctrl-C ends it\nAuthorization: Bearer {token}"
            run_server(guard.protect(app), listening, lambda: typer.echo(said, err=True))


def load_server(library: Library) -> "DocumentServer":
    """The server of the SDK. Raises `MissingError` where the extra is not installed."""
    try:
        from agent.mcp.tools import DocumentServer
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        remedy = "Install the extra: pip install 'convagent[mcp]'."
        raise MissingError("the SDK of the Model Context Protocol is not installed", remedy=remedy) from error
    return DocumentServer(library)
