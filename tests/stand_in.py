"""A stand-in on loopback for an OpenAI-compatible server: it answers as they do, and fails in each of their ways."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.conftest import PATIENCE

LISTED = {"data": [{"id": "big"}, {"id": "small", "max_model_len": 64}]}
WORKING = "hangs"  # until the stand-in is closed
GONE = "closes the connection"
PIECE = 7  # characters of an event in a stream
USAGE = {"prompt_tokens": 40, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 30}}


def said(text: str | None, finish_reason: str = "stop", **more: Any) -> dict[str, Any]:
    """A completion."""
    return {"choices": [{"message": {"content": text}, "finish_reason": finish_reason}], **more}


def fault(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "server_error"}}


def draft(*sentences: tuple[str, str]) -> str:
    """An answer as a model writes it: sentences, each with the number of what it cites."""
    return " ".join(f"{text} [{number}]" for text, number in sentences)


SYSTEMS = {"You answer questions": "write", "You say the last": "rewrite"}  # how prompts begin, and their steps


def name_step(body: dict[str, Any]) -> str:
    """The step that asks: of plain text, the one that these words are of; "" of any other."""
    named = next((step for words, step in SYSTEMS.items() if body["messages"][0]["content"].startswith(words)), "")
    return str(body.get("response_format", {}).get("json_schema", {}).get("name", named))


def write_usual(step: str) -> Iterator[str]:
    """A reply of the form that is asked for."""
    replies = {
        "write": draft(("The sea is made of old lemonade.", "1")),
        "": "Rice bread.",
        "rewrite": "Which bread has no gluten?",
    }
    yield replies.get(step, '{"text": "Which bread has no gluten?"}')


class StandIn(BaseHTTPRequestHandler):
    """Gives what `replies` holds, in order: a status with a body, a function that sends, or a way to give none.

    Else it writes: what it writes at a step comes in parts, which in a stream are sent as they come.
    """

    models: tuple[int, Any] | str  # that are listed; or `WORKING`
    replies: list[Any]
    write_parts: Callable[[str], Iterator[str]]
    asked: list[dict[str, Any]]  # the bodies
    headers_seen: list[dict[str, str]]
    closed: threading.Event

    def do_GET(self) -> None:
        if self.models == WORKING:
            self.closed.wait(PATIENCE)
        self.send(*self.models if self.path == "/v1/models" and not isinstance(self.models, str) else (404, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        self.headers_seen.append({name.lower(): value for name, value in self.headers.items()})
        reply = self.replies.pop(0) if self.replies else None
        step = name_step(body)
        if reply == WORKING:
            self.closed.wait(PATIENCE)
        if reply in (WORKING, GONE):
            self.close_connection = True
        elif callable(reply):
            reply(self)
        elif reply is not None:
            self.send(*reply)
        elif body.get("stream"):
            self._stream(type(self).write_parts(step))
        else:
            self.send(200, said("".join(type(self).write_parts(step)), usage=USAGE))

    def _stream(self, parts: Iterator[str]) -> None:
        """Events as OpenAI has them, until all is written or nobody listens."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.wfile.write(b": a comment\n\n")
            for part in parts:
                for start in range(0, len(part), PIECE):
                    self._send_event({"choices": [{"delta": {"content": part[start : start + PIECE]}}]})
            self._send_event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            self._send_event({"choices": [], "usage": USAGE})
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            return

    def _send_event(self, data: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())

    def trickle(self, *, in_header: bool) -> None:
        """A byte now and then, until the stand-in is closed or nobody listens."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if self.asked[-1].get("stream") else "application/json")
        self.flush_headers() if in_header else self.end_headers()
        with suppress(OSError):
            self.wfile.write(b"X-Slow: " if in_header else b": ")
            while not self.closed.wait(0.02):
                self.wfile.write(b"a")

    def send_packed(self, data: bytes, encoding: str = "gzip") -> None:
        """A reply that is packed, whether that was asked for or not."""
        self.close_connection = True
        self.send(200, data, {"Content-Encoding": encoding})

    def send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """A reply of bytes, or of JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # who asked may not read on
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def standing_in(kind: type[StandIn] = StandIn) -> Iterator[str]:
    """A stand-in that was asked nothing yet; its address."""
    StandIn.models, StandIn.replies, StandIn.asked, StandIn.headers_seen = (200, LISTED), [], [], []
    StandIn.write_parts, StandIn.closed = staticmethod(write_usual), threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        StandIn.closed.set()
        server.shutdown()
        thread.join()
        server.server_close()
