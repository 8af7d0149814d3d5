"""Where the server listens: its socket, its address and names, and who can reach it."""

import errno
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from schemas.addresses import is_loopback
from schemas.errors import RunError, UsageError

_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?")
_PORTS = {"http": 80, "https": 443}
OPEN = "--no-token: whoever reaches this port, any other user of this machine included, can ask, read and delete"
READABLE = "without TLS whoever is on the way can read tokens, questions and answers; see --public-url"


@dataclass(frozen=True, slots=True)
class ServerStart:
    """What is told when the server listens."""

    address: str  # of the pages, as people reach them; with the slash at its end
    listens: str  # the address that is listened on
    token: str  # for the address; empty where there is none, or each user has one
    destination: str  # where questions, passages and statements go
    warnings: tuple[str, ...]

    @property
    def address_with_token(self) -> str:
        return f"{self.address}?token={self.token}" if self.token else self.address


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


def read_public_origin(url: str) -> str:
    """The origin of the address under which a proxy shows the pages. Raises `UsageError` for what is none."""
    example = "Such as: https://ask.example.org"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.scheme not in _PORTS or "@" in parts.netloc:
        raise UsageError("--public-url is no address of a server", where=url, remedy=example)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(
            "--public-url has a path: the pages stand at the root of their host", where=url, remedy=example
        )
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, _PORTS[parts.scheme]) else "")


def list_names(host: str, public_origin: str, allowed: Sequence[str]) -> frozenset[str]:
    """The names under which the server may be asked for. Raises `UsageError` for one that cannot be one."""
    for name in allowed:
        if not _NAME.fullmatch(name.lower()):
            raise UsageError(f"--allow-host: {name!r} is no name of a host", remedy="Such as: ask.example.org")
    public = urlsplit(public_origin).hostname or ""
    return frozenset(name.lower() for name in (host, public, *allowed) if name)


def list_warnings(host: str, public_origin: str, *, needs_token: bool) -> tuple[str, ...]:
    """What the person who starts the server should know about who can reach it."""
    is_readable = not is_loopback(host) and not public_origin.startswith("https:")
    return tuple(warning for warning, holds in ((OPEN, not needs_token), (READABLE, is_readable)) if holds)
