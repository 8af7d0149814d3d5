"""What every request has to pass, before anything reads it: whose it is, and how large it is."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 256_000  # bytes of a request's body
SAFE = ("GET", "HEAD")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # "no-referrer" would make browsers send `Origin: null` with our own forms
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class RequestGuard:
    """Turns away what another site sends through the person's browser, and what is too large; names the policy."""

    app: ASGIApp
    host: str  # the name or address that is listened on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        try:
            body = await _read_body(receive)
        except ClientDisconnect:  # half a request is none
            return
        if not _is_ours(headers.get("host", ""), self.host):
            refusal = _refuse(scope, 421, "this server has no such name (its Host is that of another site)")
        elif scope["method"] not in SAFE and _is_cross_site(headers):
            refusal = _refuse(scope, 403, "this request came from another site")
        elif body is None:
            refusal = _refuse(scope, 413, f"the request is larger than {LARGEST // 1000} kB")
        else:
            await self.app(scope, _replay_body(body, receive), with_policy)
            return
        await refusal(scope, receive, with_policy)


def _is_ours(host: str, bound: str) -> bool:
    """Whether a Host header names this machine. DNS rebinding needs a name of the attacker's, so addresses may pass."""
    found = _HOST.fullmatch(host.lower())
    name = found[1].strip("[]") if found else ""
    return name in ("localhost", bound.lower()) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _is_cross_site(headers: Headers) -> bool:
    """By what browsers say of a request; other clients say neither and are nobody's cat's-paw."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    return site not in (None, "same-origin", "none") or origin not in (None, f"http://{headers['host']}")


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body; None where it is too large. Raises `ClientDisconnect` where it breaks off."""
    body = b""
    while len(body) <= LARGEST:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body if len(body) <= LARGEST else None
    return None


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """The body once more, then what comes after it."""
    waiting = [body]

    async def replay() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replay


def _refuse(scope: Scope, status: int, what: str) -> Response:
    if scope["path"].startswith("/v1/"):
        problem = {"message": what, "type": "invalid_request_error", "param": None, "code": None}
        return JSONResponse({"error": problem}, status)
    return PlainTextResponse(f"convagent: {what}\n", status)
