"""The server on a port of this machine, by streamable HTTP: for clients that know its token, and no web page."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from mcp.server.lowlevel.server import Server

from agent.serve.listening import open_socket, to_url
from agent.serve.request_guard import GuardPolicy, RequestGuard
from agent.serve.sign_in import SignIn
from agent.serve.users import TokenAccess, find_own_token, hash_token, make_token
from indexes.storage.directories import find_data_directory

HOST = "127.0.0.1"
PATH = "/mcp"
COOKIE = "convagent-mcp"  # which nobody is given: clients send the token
SHUTDOWN_SECONDS = 2  # that open connections have to finish when the server ends
MAX_SESSIONS = 100


def choose_token(*, incognito: bool) -> str:
    """The token of the last start, so that settings of clients go on working; incognito another one each time.

    Raises what `find_own_token` raises.
    """
    return make_token() if incognito else find_own_token(find_data_directory() / "mcp-token", anew=False)


def make_app(server: Server[Any], token: str) -> RequestGuard:
    """The server behind the guard, which turns away other sites and whoever does not send the token."""
    app = server.streamable_http_app(streamable_http_path=PATH, host=HOST, max_sessions=MAX_SESSIONS)
    sign_in = SignIn(TokenAccess(hash_token(token)), COOKIE)
    return RequestGuard(app, GuardPolicy(sign_in, open_paths=frozenset(), api_paths=("",)))


def run_on_port(server: Server[Any], port: int, token: str, on_start: Callable[[str, str], object]) -> None:
    """Serve until Ctrl-C or SIGTERM. Errors: those of `open_socket`."""
    with open_socket(HOST, port) as listening, suppress(KeyboardInterrupt, SystemExit):  # as in agent/serve/server.py
        on_start(f"{to_url(HOST, listening).rstrip('/')}{PATH}", token)
        uvicorn.Server(configure_uvicorn(make_app(server, token))).run(sockets=[listening])


def configure_uvicorn(app: RequestGuard) -> uvicorn.Config:
    """How the app is served: nothing is logged, and nothing is believed of proxies."""
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",  # it holds the sessions
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
