"""`convagent serve`: opens what answers, listens, and ends cleanly."""

import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from agent.chat.session import open_assistant
from agent.chat.sources import open_source
from agent.chat.store import open_store
from agent.models.embedding.index_vectors import cache_vectors
from agent.models.embedding.registry import open_embedder
from agent.serve.completions import Completions, RequestError, error_response
from agent.serve.pages import HERE, Pages
from agent.serve.request_guard import RequestGuard
from agent.serve.request_queue import RequestQueue
from schemas.errors import ConvagentError, RunError

PATIENCE = 2  # seconds that open connections have when it is to end
Ready = Callable[[str], object]  # is told the address once it is listened on


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """What is served, and where."""

    source: Path  # an index, or a folder of documents
    model: str
    embedder: str | None
    host: str = "127.0.0.1"
    port: int = 8080  # 0 takes a free one
    incognito: bool = False


def serve(serving: ServerRequest, ready: Ready) -> None:
    """Answer until Ctrl-C or SIGTERM.

    Raises `RunError` where the port is taken, and what opening index, model and store does.
    """
    with _listen(serving.host, serving.port) as listening, RequestQueue() as desk:
        embedder = open_embedder(serving.embedder)
        if embedder and not serving.incognito:
            embedder = cache_vectors(embedder)
        index = open_source(serving.source, embedder)
        store = open_store(incognito=serving.incognito)
        assistant = open_assistant(str(serving.source), index, serving.model, embedder)
        pages = Pages(assistant, store, desk, index.info, serving.incognito)
        server = uvicorn.Server(_configure_uvicorn(make_app(pages, serving.host)))
        host = f"[{serving.host}]" if ":" in serving.host else serving.host
        with suppress(KeyboardInterrupt, SystemExit):  # uvicorn ends by itself, and passes the signal on
            ready(f"http://{host}:{listening.getsockname()[1]}/")
            server.run(sockets=[listening])


def make_app(pages: Pages, host: str) -> RequestGuard:
    """The pages, `/v1` and the files that go with them, behind the guard."""
    completions = Completions(pages.assistant, pages.store, pages.desk)
    static = Mount("/static", StaticFiles(directory=HERE / "static"))

    def told(request: Request, error: Exception) -> Response:
        return error_response(request, error) if request.url.path.startswith("/v1/") else pages.failed(request, error)

    app = Starlette(
        routes=[*pages.routes(), *completions.routes(), static],
        exception_handlers={ConvagentError: told, RequestError: told, HTTPException: told, Exception: told},
    )
    return RequestGuard(app, host)  # around all of it: what says that something failed has its headers too


def _configure_uvicorn(app: RequestGuard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # what fails is told by the pages and by /v1
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=PATIENCE,
    )


def _listen(host: str, port: int) -> socket.socket:
    """A socket that is bound before anything slow is opened."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            what, remedy = "is in use", "Give --port another number (0 takes a free one), or end what uses it."
        else:
            what, remedy = f"cannot be listened on ({error.strerror})", "Give another --host or --port."
        raise RunError(what, where=f"{host}:{port}", remedy=remedy) from error
