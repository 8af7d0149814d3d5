"""`convagent mcp`: checks what can be checked at once, and serves until its client goes away or Ctrl-C."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from agent.mcp.library import Library, LibraryRequest
from schemas.errors import MissingError, UsageError

if TYPE_CHECKING:
    from agent.mcp.tools import DocumentServer
    from agent.serve.request_guard import RequestGuard

DEFAULT_INDEX = Path("index")
INFO_FILE = "convagent-index.json"
SHARD_INFO_FILES = f"shard-*-of-*/{INFO_FILE}"
HOST, PATH = "127.0.0.1", "/mcp"
COOKIE = "convagent-mcp"  # which nobody is given: clients send the token
MAX_SESSIONS = 100
log = logging.getLogger("convagent")


def choose_source(docs: Path | None, index: Path | None) -> Path:
    """The folder or index to search: what `resolve_source` says, without loading what reads it.

    Raises `UsageError` where both are named, or nothing is, `MissingError` where it is not there.
    """
    if docs and index:
        raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
    docs = docs and docs.expanduser()  # in a client's settings, no shell does
    if docs and not docs.exists():
        raise MissingError("no such file or folder", where=str(docs), remedy="--docs takes a folder of documents.")
    directory = index or Path(os.environ.get("CONVAGENT_INDEX", DEFAULT_INDEX))
    if not docs and not index and "CONVAGENT_INDEX" not in os.environ and not directory.exists():
        remedy = "Name your documents, as in --docs ~/notes, or an index with --index DIR."
        raise UsageError("nothing to search was named", remedy=remedy)
    if not docs and not any(place.exists() for place in (directory / INFO_FILE, *directory.glob(SHARD_INFO_FILES))):
        remedy = "Give --docs FOLDER, or build an index with `convagent index build PASSAGES... -o DIR`."
        raise MissingError(f"is no index (it has no {INFO_FILE})", where=str(directory), remedy=remedy)
    return (docs or directory).resolve()


def serve_on_stdio(request: LibraryRequest) -> None:
    """Serve the program that started this one, until it closes stdin.

    The SDK takes the two streams for the protocol alone: whatever else prints, libraries in C and Rust included, goes
    to stderr.
    """
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("stdin or stdout is closed", remedy="Clients start this command; --http listens on a port.")
    if sys.stdin.isatty():
        log.info("Waiting for a client on stdin; clients start this command themselves. --http listens on a port.")
    with closing(Library(request)) as library:
        server = load_server(library)
        for number in (signal.SIGINT, signal.SIGTERM):  # a thread that waits in `read` would hold up any other end
            signal.signal(number, lambda sent, _frame: os._exit(128 + sent))
        try:
            server.run()
        except* BrokenPipeError:  # the client is gone
            pass


def serve_on_port(request: LibraryRequest, port: int, on_start: Callable[[str, str], object]) -> None:
    """Serve programs of this machine that know the token, until Ctrl-C or SIGTERM.

    The token is that of the last start, so that settings of clients go on working; incognito another one each time.
    `on_start` is called with the address and the token as soon as the server listens. Raises `RunError` where the port
    is taken, and what `find_own_token` raises.
    """
    with closing(Library(request)) as library:
        server = load_server(library)
        from agent.serve.connections import run_server
        from agent.serve.listening import open_socket, to_url
        from agent.serve.users import find_own_token, make_token
        from indexes.storage.directories import find_data_directory

        kept = find_data_directory() / "mcp-token"
        token = make_token() if request.incognito else find_own_token(kept, anew=False)
        with open_socket(HOST, port) as listening:
            url = f"{to_url(HOST, listening).rstrip('/')}{PATH}"
            run_server(guard_server(server, token), listening, lambda: on_start(url, token))


def guard_server(server: "DocumentServer", token: str) -> "RequestGuard":
    """The server behind the guard of `serve`, which turns away other sites and whoever does not send the token."""
    from agent.serve.request_guard import GuardPolicy, RequestGuard
    from agent.serve.users import TokenAccess, hash_token

    app = server.streamable_http_app(streamable_http_path=PATH, host=HOST, max_sessions=MAX_SESSIONS)
    return RequestGuard(app, GuardPolicy(TokenAccess(hash_token(token)), COOKIE, open_paths=(), api_paths=("",)))


def load_server(library: Library) -> "DocumentServer":
    """The server of the SDK. Raises `MissingError` where the extra is not installed."""
    gc.disable()  # types are made by the hundred, and none is thrown away
    try:
        from agent.mcp.tools import DocumentServer

        return DocumentServer(library)
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        remedy = "Install the extra: pip install 'convagent[mcp]'."
        raise MissingError("the SDK of the Model Context Protocol is not installed", remedy=remedy) from error
    finally:
        gc.freeze()
        gc.enable()
