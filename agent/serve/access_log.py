"""The access log (`--access-log`): who asked when for which kind of page, how it ended and how long it took.

One JSON object a line, such as {"time": "2026-01-02T03:04:05.678Z", "user": "ana", "method": "GET", "path":
"/chats/{chat}", "status": 200, "ms": 12}. No contents: paths are those of the routes, without numbers, names and
queries, and what has no route is "-".
"""

import logging
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.errors import RunError

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
LEFT = 499  # the client went away before there was an answer
log = logging.getLogger("convagent")


@dataclass(slots=True)
class AccessLog:
    """Writes a line for each request that the application inside has answered. Where it cannot, answers matter more."""

    app: ASGIApp
    path: Path
    problem: str = field(default="", init=False)  # that was told last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, begin = LEFT, time.perf_counter()

        async def note_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            self._write_line(scope, status, time.perf_counter() - begin)

    def _write_line(self, scope: Scope, status: int, seconds: float) -> None:
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "user": scope.get("state", {}).get("user") or "-",
            "method": scope["method"] if scope["method"] in METHODS else "-",
            "path": getattr(scope.get("route"), "path", "-"),
            "status": status,
            "ms": round(seconds * 1000),
        }
        try:
            _append(self.path, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            if self.problem != str(error):
                log.warning("the access log cannot be written: %s", error)
            self.problem = str(error)


def check_log(path: Path) -> None:
    """Raises `RunError` for a log that cannot be written."""
    try:
        _append(path, b"")
    except OSError as error:
        raise RunError(f"the access log cannot be written ({error.strerror})", where=str(path)) from error


def _append(path: Path, line: bytes) -> None:
    """Append to a file for its owner alone, opened anew so that it may be moved away."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(line)
