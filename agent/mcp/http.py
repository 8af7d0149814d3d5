"""The server on a port of this machine, by streamable HTTP: for clients that know its token, and no web page."""

import hmac
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server.lowlevel.server import Server
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.serve.listening import open_socket, to_url
from agent.serve.request_guard import RequestGuard
from schemas.errors import UsageError

HOST = "127.0.0.1"
PATH = "mcp"
TOKEN = "CONVAGENT_TOKEN"  # noqa: S105 - the name of a setting
SHORTEST_TOKEN = 16  # characters
SHUTDOWN_SECONDS = 2  # that open connections have to finish when the server ends
MAX_SESSIONS = 100


@dataclass(frozen=True, slots=True)
class TokenGuard:
    """Turns away requests without the token: other programs and other people of this machine do not know it."""

    app: ASGIApp
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_known(Headers(scope=scope).get("authorization", "")):
            what = "convagent: this server wants the token that it printed: `Authorization: Bearer TOKEN`\n"
            await PlainTextResponse(what, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _is_known(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self.token.encode())


def choose_token() -> str:
    """The token of `CONVAGENT_TOKEN`, else a new one. Raises `UsageError` for one that could be guessed."""
    token = os.environ.get(TOKEN, "").strip() or secrets.token_urlsafe(24)
    if len(token) < SHORTEST_TOKEN or not token.isascii():
        raise UsageError(
            f"{TOKEN} is too easy to guess", remedy=f"Give it {SHORTEST_TOKEN} plain characters, or unset it."
        )
    return token


def make_app(server: Server[Any], token: str) -> RequestGuard:
    """The server behind token and request guard."""
    app = server.streamable_http_app(streamable_http_path=f"/{PATH}", host=HOST, max_sessions=MAX_SESSIONS)
    return RequestGuard(TokenGuard(app, token), HOST)


def run_on_port(server: Server[Any], port: int, on_start: Callable[[str, str], object]) -> None:
    """Serve until Ctrl-C or SIGTERM. Errors: those of `choose_token` and `open_socket`."""
    token = choose_token()
    with open_socket(HOST, port) as listening, suppress(KeyboardInterrupt, SystemExit):  # as in agent/serve/server.py
        on_start(f"{to_url(HOST, listening)}{PATH}", token)
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
