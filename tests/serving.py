"""`convagent serve` as a person starts it: a process of its own on a free port, ended by Ctrl-C."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from tests.conftest import OFFLINE, PATIENCE, ROOT, own_settings_left_out

NO_MODELS = ("--model", "none", "--embedder", "none")
SHADE = "Which plants grow well in pots on a shady balcony?"
ASKED: dict[str, Any] = {"model": "convagent", "messages": [{"role": "user", "content": SHADE}]}

PLAIN: dict[str, Any] = {
    "timeout": PATIENCE,
    "trust_env": False,
    "verify": False,
}  # no certificates: reading them costs


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is running."""

    address: str  # with the slash at its end
    process: subprocess.Popen[str]
    token: str = ""  # empty where there is none, or several
    said: str = ""  # up to the address, and the line that it is in

    @property
    def key(self) -> dict[str, str]:
        """The header of a client that may ask."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def open_client(self, **options: Any) -> httpx.Client:
        """A client that follows redirections, with the token."""
        headers = self.key | options.pop("headers", {})
        return httpx.Client(base_url=self.address, headers=headers, follow_redirects=True, **PLAIN | options)

    def open_stranger(self) -> httpx.Client:
        """A client without the token: another user of the machine, or a browser that is not signed in."""
        return httpx.Client(base_url=self.address, **PLAIN)

    def connect(self) -> socket.socket:
        """A connection, to be asked byte by byte: a client of good manners would mend what is sent."""
        url = httpx.URL(self.address)
        return socket.create_connection((url.host, url.port or 80), timeout=PATIENCE)

    def write_head(self, line: str, *more: str) -> bytes:
        """The head of a request of somebody who has the token."""
        host = httpx.URL(self.address).netloc.decode()
        lines = [line, f"Host: {host}", f"Authorization: Bearer {self.token}", *more, "", ""]
        return "\r\n".join(lines).encode()

    def get(self, path: str = "/") -> httpx.Response:
        """A page, with the token."""
        with self.open_client() as client:
            return client.get(path)

    def count_tracebacks(self) -> int:
        """How many tracebacks it wrote since it began; it has to be ended before."""
        assert self.process.stderr
        return self.process.stderr.read().count("Traceback")

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), "serve", *map(str, arguments)]


def environment(data: Path) -> dict[str, str]:
    return own_settings_left_out() | {"CONVAGENT_DATA": str(data)} | OFFLINE


@contextmanager
def serving(index: Path, data: Path, *arguments: str, files: int | None = None) -> Iterator[Server]:
    """A server over an index, with a person's data in a folder of its own; it may open so many files."""
    with serving_source("--index", index, data, *arguments, files=files) as server:
        yield server


@contextmanager
def serving_source(
    option: str,
    source: Path,
    data: Path,
    *arguments: str,
    files: int | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Server]:
    """A server over what `--index` or `--docs` names, with further settings in its environment."""
    called = command(option, source, "--port", "0", *arguments)
    if files:
        called = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *called]
    with subprocess.Popen(called, env=environment(data) | dict(settings), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = ""
        while not (
            found := re.search(r"(http://\S+/)(?:\?token=(\S+))?", said)
        ):  # a model may be prepared first, which is told
            line = process.stderr.readline()
            assert line, said
            said += line
        try:
            yield Server(found[1], process, found[2] or "", said)
        finally:
            process.kill()


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    pieces = []
    try:
        while piece := connection.recv(65536):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def ask(client: httpx.Client, question: str, **fields: str) -> httpx.Response:
    """The page once the answer is there, without scripts."""
    page = client.post("/ask", data={"question": question, **fields})
    while "data-working" in page.text:
        page = client.get(page.url)
    return page


def wait_until(holds: Callable[[], object]) -> None:
    """Look again and again."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
