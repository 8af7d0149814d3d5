"""A look-up or a connection that is not to loopback ends the process with code 99."""

import os
import sys
from typing import Any


def loopback(host: object) -> bool:
    return host in (None, "", b"", "localhost", b"localhost", "::1") or str(host).startswith("127.")


def guard(event: str, arguments: Any) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple) and not loopback(arguments[1][0]):
        os.write(2, b"TRIED TO GET OUT: %r\n" % (arguments[1],))
        os._exit(99)
    if event in ("socket.getaddrinfo", "socket.gethostbyname") and not loopback(arguments[0]):
        os.write(2, b"TRIED TO LOOK UP: %r\n" % (arguments[0],))
        os._exit(99)


def install() -> None:
    """From now on, in this process."""
    sys.addaudithook(guard)
