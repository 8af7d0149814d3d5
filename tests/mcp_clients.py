"""`convagent mcp` as its clients start it, and clients of the SDK to ask it with."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextResourceContents

from tests.conftest import OFFLINE, PATIENCE, ROOT, own_settings_left_out

T = TypeVar("T")
NO_MODELS = ("--model", "none", "--embedder", "none")
JAM = "How long may I keep the plum jam?"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), "mcp", *map(str, arguments)]


def environment(data: Path) -> dict[str, str]:
    return (
        own_settings_left_out()
        | {"CONVAGENT_DATA": str(data), "CONVAGENT_CACHE": os.environ["CONVAGENT_CACHE"]}
        | OFFLINE
    )


def talk(conversation: Callable[[Client], Awaitable[T]], server: Any, *, mode: str = "auto") -> T:
    """What a conversation with a server gives; `mode` is the SDK's, "legacy" for clients of before 2026."""

    async def run() -> T:
        with anyio.fail_after(PATIENCE):
            async with Client(server, mode=mode) as client:
                return await conversation(client)

    return anyio.run(run)


def call(server: Any, tool: str, **arguments: Any) -> Any:
    """The result of one call in a client of its own."""
    return talk(lambda client: client.call_tool(tool, arguments), server)


async def read_text(client: Client, uri: str) -> str:
    """The text of a resource."""
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return contents.text


@asynccontextmanager
async def connect(url: str, authorization: str) -> AsyncIterator[Any]:
    """A transport for the SDK's client, to a server that listens."""
    headers = {"Authorization": authorization}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


@dataclass(frozen=True, slots=True)
class PortServer:
    """A server that listens."""

    url: str
    token: str
    process: "subprocess.Popen[str]"

    def connect(self) -> Any:
        """A transport for the SDK's client."""
        return connect(self.url, f"Bearer {self.token}")


@contextmanager
def on_port(data: Path, *arguments: str | Path) -> Iterator[PortServer]:
    """A server that listens on a free port."""
    called = command(*arguments, "--http", "--port", "0")
    with subprocess.Popen(called, env=environment(data), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.readline() + process.stderr.readline()
        url, token = re.search(r"http://\S+/mcp", said), re.search(r"Bearer (\S+)", said)
        assert url, said
        assert token, said
        try:
            yield PortServer(url[0], token[1], process)
        finally:
            process.kill()


class RawServer:
    """A server on stdio whose output is looked at byte by byte. `arguments` are those of Python."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            env=environment(data) | {"PYTHONPATH": f"{ROOT}{os.pathsep}{OFFLINE['PYTHONPATH']}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.output = b""
        self.replies: dict[int | None, Any] = {}

    def __enter__(self) -> "RawServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        with suppress(BrokenPipeError), self.process:
            pass

    def send(self, method: str, id: int | None = None, /, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
        self.send_raw(msgspec.json.encode(message) + b"\n")

    def send_raw(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def call(self, id: int, tool: str, /, **arguments: Any) -> None:
        self.send("tools/call", id, name=tool, arguments=arguments)

    def read_reply(self, id: int) -> Any:
        """The reply to a request, which may have come already."""
        assert self.process.stdout
        while id not in self.replies:
            line = self.process.stdout.readline()
            assert line, f"no reply to {id}: {self.process.communicate()[1]!r}"
            self.output += line
            reply = msgspec.json.decode(line)
            self.replies[reply.get("id")] = reply
        return self.replies[id]

    def initialize(self) -> None:
        info = {"name": "test", "version": "1"}
        self.send("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        self.read_reply(0)
        self.send("notifications/initialized")

    def end(self) -> tuple[int, str]:
        """Close stdin, as clients do; the exit code and what was on stderr."""
        out, error = self.process.communicate(timeout=PATIENCE)
        self.output += out
        return self.process.returncode, error.decode()

    def check_output(self) -> None:
        """Each line of stdout must be a message of the protocol, and there must be nothing else."""
        assert self.output.endswith(b"\n")
        for message in map(msgspec.json.decode, self.output.splitlines()):
            assert message["jsonrpc"] == "2.0"
            assert message.keys() & {"result", "error", "method"}
