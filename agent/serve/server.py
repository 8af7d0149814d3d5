"""`convagent serve`: opens index, model and store, serves pages and `/v1`, and ends cleanly."""

import math
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

from agent.chat.background_vectors import make_vectors_meanwhile
from agent.chat.opening import begin_to_open_models
from agent.chat.scope import require_scope
from agent.chat.session import open_assistant_over, open_collection
from agent.chat.sources import READING_SECONDS, open_source
from agent.chat.store import open_store
from agent.chat.watching import watch_documents
from agent.serve.completions import Completions, RequestError, error_response
from agent.serve.listening import open_socket, to_url
from agent.serve.pages import HERE, Pages
from agent.serve.request_guard import RequestGuard
from agent.serve.request_queue import RequestQueue
from schemas.errors import ConvagentError

SHUTDOWN_SECONDS = 2  # that open connections have to finish when the server ends


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """What is served, and where."""

    source: Path  # an index, or a folder of documents
    model: str
    embedder: str | None
    host: str = "127.0.0.1"
    port: int = 8080  # 0 takes a free one
    incognito: bool = False
    only: str = ""  # what conversations are kept to from their beginning, as `agent.chat.scope` has it
    follow_links: bool = False  # also those that lead out of the folder


def serve(request: ServerRequest, on_start: Callable[[str], object]) -> None:
    """Answer until Ctrl-C or SIGTERM; `on_start` is called with the address as soon as the server listens.

    Raises `RunError` where the port is taken, and what opening index, model and store raises.
    """
    with open_socket(request.host, request.port) as listening, RequestQueue() as queue:
        models = begin_to_open_models(request.model, request.embedder, keep_vectors=not request.incognito)
        seconds = math.inf if request.only else READING_SECONDS
        index = open_source(request.source, None, seconds, follow_links=request.follow_links)
        embedder = models.find_embedder()
        current = open_collection(str(request.source), index, embedder, words_first=True)
        only = require_scope(request.only, current.collection)
        store = open_store(incognito=request.incognito)
        assistant = open_assistant_over(current, request.model, embedder, only, models.find_model())
        pages = Pages(assistant, store, queue, request.incognito)
        server = uvicorn.Server(_configure_uvicorn(make_app(pages, request.host)))
        passed_on = suppress(KeyboardInterrupt, SystemExit)  # uvicorn ends by itself, and passes the signal on
        watching = watch_documents(current, None, follow_links=request.follow_links)
        with watching, make_vectors_meanwhile(current, embedder), passed_on:
            on_start(to_url(request.host, listening))
            server.run(sockets=[listening])


def make_app(pages: Pages, host: str) -> RequestGuard:
    """The pages, `/v1` and their static files, behind the request guard."""
    completions = Completions(pages.assistant, pages.store, pages.queue)
    static = Mount("/static", StaticFiles(directory=HERE / "static"))

    def respond_to_error(request: Request, error: Exception) -> Response:
        if request.url.path.startswith("/v1/"):
            return error_response(request, error)
        return pages.show_error(request, error)

    app = Starlette(
        routes=[*pages.routes(), *completions.routes(), static],
        exception_handlers=dict.fromkeys((ConvagentError, RequestError, HTTPException, Exception), respond_to_error),
    )
    return RequestGuard(app, host)  # around all of it, so that error pages have its headers too


def _configure_uvicorn(app: RequestGuard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # errors are shown by the pages and by /v1
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
