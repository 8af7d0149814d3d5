"""What every request has to pass before anything reads it: to whom it is, from which site, whose it is, how large.

It stands around any ASGI application. Who asks is `scope["state"]["user"]` inside ("" where there is only one person).
"""

import asyncio
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.serve.sign_in import CHALLENGE, SignIn
from agent.serve.v1.requests import RequestError

BURST = 400  # requests at once
PER_SECOND = 20.0  # later on
POLLS_AT_ONCE, POLLS_PER_SECOND = 2000, 200.0  # a page that waits for an answer asks two or three times a second


@dataclass(slots=True)
class RequestLimit:
    """A token bucket for each user: many requests at once, as a page sends that is opened, and then so many a second.

    What open pages ask by themselves, again and again, is counted apart: any number of tabs leaves room for questions.
    """

    burst: int = BURST
    per_second: float = PER_SECOND
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)  # requests left, and when that was so

    def count_request(self, user: str) -> int:
        """Count a request; 0 where it may be answered, else the seconds after which it is worth trying again."""
        now = time.monotonic()
        left, before = self._left.get(user, (float(self.burst), now))
        left = min(self.burst, left + (now - before) * self.per_second)
        is_allowed = left >= 1
        self._left[user] = (left - is_allowed, now)
        return 0 if is_allowed else math.ceil((1 - left) / self.per_second)


LARGEST = 256_000  # bytes of a request's body
BODY_SECONDS = 15.0  # for a body to arrive
LARGEST_UPLOAD = 50_000_000  # bytes, in memory while they arrive
SAFE = ("GET", "HEAD")
_POLL = re.compile(r"/progress|/asked/[^/]+/steps")  # what pages ask for by themselves
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
class GuardPolicy:
    """Whom a guard lets in."""

    sign_in: SignIn
    names: frozenset[str] = frozenset()  # of this server, beside `localhost` and addresses
    public_origin: str = ""  # such as https://ask.example.org, where a proxy stands before it
    limit: RequestLimit = field(default_factory=RequestLimit)
    poll_limit: RequestLimit = field(default_factory=lambda: RequestLimit(POLLS_AT_ONCE, POLLS_PER_SECOND))
    open_paths: frozenset[str] = frozenset({"/health", "/sign-in"})  # that need no token
    api_paths: tuple[str, ...] = ("/v1",)  # whose errors are JSON, in OpenAI's form
    upload_path: str = ""  # to which larger bodies may be sent


@dataclass(frozen=True, slots=True)
class RequestGuard:
    """Turns away what another site sends through the person's browser, who shows no token, and what is too large."""

    app: ASGIApp
    policy: GuardPolicy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            read = self._turn_away(scope) or self._identify(scope) or await self._read_body(scope, receive)
        except ClientDisconnect:  # half a request is none
            return
        if isinstance(read, Response):
            await read(scope, receive, with_policy)
        else:
            await self.app(scope, _replay_body(read, receive), with_policy)

    def _turn_away(self, scope: Scope) -> Response | None:
        """The refusal of what is for another server, or from another site."""
        headers = Headers(scope=scope)
        if not _is_ours(headers.get("host", ""), self.policy.names):
            return self._refuse(scope, 421, "this server has no such name (--allow-host adds one)")
        if scope["method"] not in SAFE and self._is_cross_site(headers):
            return self._refuse(scope, 403, "this request came from another site")
        return None

    def _identify(self, scope: Scope) -> Response | None:
        """Note whose request it is, or give the reply to a token in an address, to none, or to too many requests."""
        request, sign_in = Request(scope), self.policy.sign_in
        if not self._is_api(scope) and (exchanged := sign_in.exchange_address(request)):
            return exchanged
        user = sign_in.access.find_user(sign_in.read_token(request))
        if user is None and scope["path"] not in self.policy.open_paths:
            if not self._is_api(scope):
                return sign_in.ask_for_token(request)
            remedy = "as `Authorization: Bearer TOKEN` (the API key of OpenAI's clients)"
            what = f"the token of this server is needed, {remedy}"
            return self._refuse(scope, 401, what, headers=CHALLENGE, code="invalid_api_key")
        scope.setdefault("state", {})["user"] = user or ""
        limit = self.policy.poll_limit if _POLL.fullmatch(scope["path"]) else self.policy.limit
        if user is not None and (seconds := limit.count_request(user)):
            headers = {"Retry-After": str(seconds)}
            return self._refuse(scope, 429, "too many requests", headers=headers, code="rate_limit_exceeded")
        return None

    def _is_cross_site(self, headers: Headers) -> bool:
        """By what browsers say of a request; other clients say neither and are nobody's cat's-paw."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        own = (None, f"http://{headers['host']}", self.policy.public_origin or None)
        return site not in (None, "same-origin", "none") or origin not in own

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """The whole body, or the refusal of one that is too large or too slow. Raises `ClientDisconnect`."""
        is_upload = scope["method"] == "POST" and scope["path"] == self.policy.upload_path
        largest, body = LARGEST_UPLOAD if is_upload else LARGEST, bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in Request(scope, receive).stream():
                    body += chunk
                    if len(body) > largest:
                        return self._refuse(scope, 413, f"the request is larger than {largest // 1000} kB")
        except TimeoutError:
            return self._refuse(scope, 408, "the request took too long", headers={"Connection": "close"})
        return bytes(body)

    def _is_api(self, scope: Scope) -> bool:
        return any(scope["path"] == path or scope["path"].startswith(f"{path}/") for path in self.policy.api_paths)

    def _refuse(
        self, scope: Scope, status: int, what: str, *, headers: Mapping[str, str] | None = None, code: str | None = None
    ) -> Response:
        if not self._is_api(scope):
            return PlainTextResponse(f"convagent: {what}\n", status, headers)
        return JSONResponse(RequestError(status, what, code=code).body, status, headers)


def _is_ours(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header names this server. DNS rebinding needs a name of the attacker's, so addresses may pass."""
    found = _HOST.fullmatch(host.lower())
    name = found[1].strip("[]") if found else ""
    if name == "localhost" or name in names:
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """The body once more, then what comes after it."""
    waiting = [body]

    async def replay() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replay
