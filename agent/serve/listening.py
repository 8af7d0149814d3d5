"""Where the server listens: its socket, its address, and who can reach it."""

import errno
import socket
from ipaddress import ip_address

from schemas.errors import RunError


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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
