"""`convagent mcp`: checks what can be checked at once, and serves until its client goes away or Ctrl-C."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agent.mcp.library import Library, LibraryRequest
from agent.mcp.protocol_streams import IncomingLines, ProtocolStreams, keep_for_protocol
from schemas.errors import MissingError, UsageError

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp.server.lowlevel.server import Server

EXTRA = "mcp"
DEFAULT_INDEX = Path("index")
INFO_FILE = "convagent-index.json"
SHARD_INFO_FILES = f"shard-*-of-*/{INFO_FILE}"
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
    """Serve the program that started this one, until it closes stdin. Nothing but the protocol is on stdout."""
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("stdin or stdout is closed", remedy="Clients start this command; --http listens on a port.")
    if sys.stdin.isatty():
        log.info("Waiting for a client on stdin; clients start this command themselves. --http listens on a port.")
    streams = keep_for_protocol()
    with closing(Library(request)) as library:
        server = load_server(library)
        import anyio

        handler = signal.getsignal(signal.SIGTERM)
        is_terminated = anyio.run(_serve_until_terminated, server, streams)
        signal.signal(signal.SIGTERM, handler)
        if is_terminated:
            signal.raise_signal(signal.SIGTERM)  # what it comes to is the command line's affair


def serve_on_port(request: LibraryRequest, port: int, on_start: Callable[[str, str], object]) -> None:
    """Serve programs of this machine that know the token, until Ctrl-C or SIGTERM.

    `on_start` is called with the address and the token as soon as the server listens. Raises `RunError` where the port
    is taken.
    """
    with closing(Library(request)) as library:
        server = load_server(library)
        from agent.mcp.http import choose_token, run_on_port

        run_on_port(server, port, choose_token(incognito=request.incognito), on_start)


def load_server(library: Library) -> "Server[Any]":
    """The server of the SDK. Raises `MissingError` where the extra is not installed."""
    with _no_collection():
        try:
            from agent.mcp.server import make_server
        except ModuleNotFoundError as error:
            if error.name not in ("mcp", "mcp_types"):
                raise
            remedy = f"Install the extra: pip install 'convagent[{EXTRA}]'."
            raise MissingError("the SDK of the Model Context Protocol is not installed", remedy=remedy) from error
        return make_server(library)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: types are made by the hundred and none is thrown away."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


async def _serve_until_terminated(server: "Server[Any]", streams: ProtocolStreams) -> bool:
    """Serve until the client goes away or SIGTERM comes; whether it came. A signal ends tasks, it breaks none."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_serve_client, server, streams, tasks.cancel_scope)
            async for _ in signals:
                tasks.cancel_scope.cancel()
                return True
    return False


async def _serve_client(server: "Server[Any]", streams: ProtocolStreams, scope: "CancelScope") -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    lines, output = cast("Any", IncomingLines(streams.input)), anyio.wrap_file(streams.output)
    try:
        async with stdio_server(lines, output) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* BrokenPipeError:  # the client is gone
        pass
    scope.cancel()
