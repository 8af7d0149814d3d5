"""`convagent serve`: opens index, model and store, serves pages and `/v1`, and ends cleanly."""

import logging
import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from agent.chat.opening import ModelToCome, begin_to_open_models, open_library
from agent.chat.session import Assistant
from agent.chat.source import Asked
from agent.chat.store import open_store
from agent.models.registry import describe_destination, is_server_address
from agent.serve.connections import open_socket, run_server, to_url
from agent.serve.documents import UPLOAD_PATH, DocumentPages, find_upload_folder
from agent.serve.models import ModelPages
from agent.serve.pages import Pages
from agent.serve.rendering import HERE
from agent.serve.request_guard import RequestGuard
from agent.serve.request_queue import RequestQueue
from agent.serve.users import Access, find_own_token, hash_token, make_token
from agent.serve.v1.endpoints import Endpoints
from agent.serve.v1.requests import RequestError, respond_to_error
from agent.terminal.reports import report_server_start
from indexes.storage.directories import find_data_directory
from indexes.text.languages import find_question_language
from indexes.text.sentences import load_tokenizer
from schemas.addresses import is_loopback
from schemas.errors import ConvagentError, UsageError

_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?")
OPEN = "--no-token: whoever reaches this port, any other user of this machine included, can ask, read and delete"
READABLE = "without TLS whoever is on the way can read tokens, questions and answers; see --public-url"
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class ServerRequest(Asked):
    host: str = "127.0.0.1"
    port: int = 8080  # 0 takes a free one
    needs_token: bool = True
    new_token: bool = False
    users: Path | None = None  # a file of users, in place of the one token
    allow_host: Sequence[str] = ()  # further names of this server
    public_url: str = ""  # under which a proxy shows it
    allow_upload: bool = False  # of documents into the folder, through the page, by others than one person here
    open_browser: bool = False


def serve(request: ServerRequest) -> None:
    """Answer until Ctrl-C or SIGTERM.

    A model's server is asked meanwhile: one that says nothing holds up what it is to answer, and nothing else; one that
    is not there ends this server. Raises `UsageError` for what cannot be meant, `RunError` where the port is taken, and
    what opening users, index, model and store raises.
    """
    source = request.find_source()
    origin = read_public_origin(request.public_url) if request.public_url else ""
    names = list_names(request.host, origin, request.allow_host)
    access, token = open_access(request)
    with ExitStack() as opened:
        listening = opened.enter_context(open_socket(request.host, request.port))
        queue = opened.enter_context(RequestQueue())
        answering, embedding = begin_to_open_models(request)
        library = opened.enter_context(open_library(request, embedding.get))
        store = open_store(incognito=request.incognito)
        llm = ModelToCome(answering) if is_server_address(request.model) else answering.get()
        assistant = Assistant(library.current, request.model, llm, library.scope)
        # Before the first question: no library can be imported once a crowd of connections has taken all open files.
        load_tokenizer()
        find_question_language("Welche Pflanzen wachsen gut in Töpfen?")  # loads the model as well
        is_shared = bool(request.public_url) or not is_loopback(request.host)
        is_own = request.needs_token and not request.users and not is_shared and source.is_dir()
        may_upload = request.allow_upload or (is_own and library.current.collection.is_folder)
        uploads = find_upload_folder(library.current.collection) if may_upload else None
        destination = describe_destination(request.model, request.embedder, is_shared=is_shared)
        pages = Pages(assistant, store, queue, destination, request.incognito, uploads, is_own)
        listens = to_url(request.host, listening)
        shown = f"{origin}/" if origin else listens
        is_secure = shown.startswith("https:")
        # Cookies know no ports, so servers side by side have their own; `__Host-` keeps those of subdomains out.
        cookie = "__Host-convagent" if is_secure else f"convagent-{listening.getsockname()[1]}"
        upload_path = UPLOAD_PATH if uploads else ""
        models = opened.enter_context(closing(ModelPages(assistant))) if is_own else None
        app = make_app(pages, models, RequestGuard(access, cookie, is_secure, names, origin, upload_path=upload_path))

        def on_start() -> None:
            report_server_start(shown, token, destination, open_browser=request.open_browser)
            if listens != shown:
                log.info("it listens on %s (a proxy shows it at the address above)", listens)
            for warning in list_warnings(request.host, origin, needs_token=request.needs_token):
                log.warning("%s", warning)

        run_server(app, listening, on_start, answering.has_failed)
    if answering.has_failed():
        answering.get()  # raises why
    if queue.is_hanging() or not library.watcher.has_ended:
        _leave_at_once("an answer in hand" if queue.is_hanging() else "reading")


def open_access(request: ServerRequest) -> tuple[Access, str]:
    """Who may ask, and the token to print, if there is one.

    Raises `UsageError` for flags that exclude each other, and what `find_own_token` and `read_users` raise.
    """
    if request.users and not request.needs_token:
        raise UsageError("--users and --no-token exclude each other", remedy="Leave one of the two out.")
    if request.new_token and (request.users or not request.needs_token):
        remedy = "`convagent users add NAME --new-token` gives a user another one."
        raise UsageError("--new-token is for a server with one token", remedy=remedy)
    if request.users:
        return Access(users=request.users), ""
    if not request.needs_token:
        return Access(), ""
    path = find_data_directory() / "serve-token"
    token = make_token() if request.incognito else find_own_token(path, anew=request.new_token)
    return Access(hash_token(token)), token


def make_app(pages: Pages, models: ModelPages | None, guard: RequestGuard) -> ASGIApp:
    assistant, queue = pages.assistant, pages.queue
    routes: list[BaseRoute] = [
        *pages.routes(),
        *DocumentPages(assistant, pages.store, pages.uploads).routes(),
        *Endpoints(assistant, pages.store, queue).routes(),
        *(models.routes() if models else ()),
        *guard.routes(),
        Route("/health", show_health),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]

    def explain(request: Request, error: Exception) -> Response:
        respond = respond_to_error if request.url.path.startswith("/v1/") else pages.show_error
        return respond(request, error)

    handled = (ConvagentError, RequestError, HTTPException, ClientDisconnect, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, explain))
    return guard.protect(app)  # around all of it, so that error pages have its headers too


def read_public_origin(url: str) -> str:
    """The origin of the address under which a proxy shows the pages. Raises `UsageError` for what is none."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL()
    origin = f"{parsed.scheme}://{parsed.netloc.decode()}"
    if not parsed.host or parsed.scheme not in ("http", "https") or str(parsed).rstrip("/") != origin:
        raise UsageError("--public-url is no address of a server", where=url, remedy="Such as: https://ask.example.org")
    return origin


def list_names(host: str, public_origin: str, allowed: Sequence[str]) -> frozenset[str]:
    """The names under which the server may be asked for. Raises `UsageError` for one that cannot be one."""
    for name in allowed:
        if not _HOST_NAME.fullmatch(name.lower()):
            raise UsageError(f"--allow-host: {name!r} is no name of a host", remedy="Such as: ask.example.org")
    public = urlsplit(public_origin).hostname or ""
    return frozenset(name.lower() for name in (host, public, *allowed) if name)


def list_warnings(host: str, public_origin: str, *, needs_token: bool) -> tuple[str, ...]:
    """What the person who starts the server should know about who can reach it."""
    is_readable = not is_loopback(host) and not public_origin.startswith("https:")
    return tuple(warning for warning, holds in ((OPEN, not needs_token), (READABLE, is_readable)) if holds)


async def show_health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _leave_at_once(what: str) -> None:
    """End the process although a thread is at work, which heeds nothing: it computes, or waits for another process.

    What is written meanwhile is whole or not there, as where a process is killed; one that reads documents ends itself.
    """
    log.info("%s was left unfinished", what)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
