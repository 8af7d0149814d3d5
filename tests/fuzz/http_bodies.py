"""Requests that nobody should send: odd methods, paths, headers, and bodies broken in every way that files are."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from tests.fuzz.mutators import broken

SECONDS = 60  # for any reply
TOO_MANY = 429  # requests: a client is to wait as long as it is told
METHODS = ("POST", "POST", "POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "BREW")
REQUESTS: dict[str, Any] = json.loads(Path(__file__).with_name("requests.json").read_text(encoding="utf-8"))
BODIES, FORMS, KINDS = REQUESTS["bodies"], REQUESTS["forms"], REQUESTS["content_types"]
PATHS = (*BODIES, *REQUESTS["paths"])
MADE_UP = (b"[" * 200_000, b"9" * 5000, b'{"messages": ' * 5000, b"\xff\xfe{}", b"a=" + b"%" * 9999, b"", b"\x00" * 99)


@dataclass(frozen=True, slots=True)
class OddRequest:
    """A request, and what it is sent with."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def make_request(number: int) -> OddRequest:
    """One of many; the same number makes the same."""
    rng = Random(number)  # noqa: S311  (no secret)
    path = rng.choice(PATHS[:3] * 4 + PATHS)
    if rng.random() < 0.2:
        path = f"{path.rstrip('/')}/{quote(rng.randbytes(rng.randrange(1, 40)))}?{quote(rng.randbytes(9))}"
    headers = {"Content-Type": rng.choice(KINDS[:1] * 6 + KINDS)} if rng.random() < 0.95 else {}
    if rng.random() < 0.1:
        headers[rng.choice(("Origin", "Host", "Cookie", "Content-Encoding", "Accept", "Range"))] = rng.choice(
            (*REQUESTS["header_values"], "a" * 5000, "\x80")
        )
    return OddRequest(rng.choice(METHODS), path, headers, _make_body(rng, BODIES.get(path, BODIES[PATHS[0]])))


def _make_body(rng: Random, usual: Mapping[str, object]) -> bytes:
    whole = json.dumps(usual).encode() if rng.random() < 0.7 else urlencode(rng.choice(FORMS)).encode()
    return rng.choice(MADE_UP) if rng.random() < 0.2 else broken(rng, whole, rng.choice((".json", ".txt")))


def send(client: httpx.Client, asked: OddRequest) -> tuple[int, list[str]]:
    """The status of the reply, 0 for one that cannot be sent, and what is wrong with it."""
    try:
        while True:
            reply = client.request(asked.method, asked.path, headers=asked.headers, content=asked.body)
            if reply.status_code != TOO_MANY:
                break
            time.sleep(float(reply.headers["Retry-After"]))
    except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeEncodeError):
        return 0, []  # the client knows better
    except httpx.HTTPError as error:
        return 1, [f"no reply ({type(error).__name__}: {error})"]
    return reply.status_code, list(_judge(asked, reply))


def _judge(asked: OddRequest, reply: httpx.Response) -> Iterator[str]:
    if reply.status_code >= 500 and reply.status_code != 503:
        yield f"{reply.status_code}: {reply.text[:300]!r}"
    if "Traceback" in reply.text:
        yield "shows a traceback"
    if reply.status_code >= 400 and asked.path.startswith("/v1/") and asked.method != "HEAD":
        try:
            message = reply.json()["error"]["message"]
        except (ValueError, KeyError, TypeError):
            yield f"{reply.status_code} without the protocol's error: {reply.text[:300]!r}"
        else:
            if not message or len(message) > 2000:
                yield f"says {message[:100]!r}"
