"""What every request has to pass before anything reads it: to whom it is, from which site, whose it is, how large.

It stands around any ASGI application. Who asks is `scope["state"]["user"]` inside ("" where there is only one person).

A browser signs in by the printed address, whose token becomes a cookie and leaves the address bar. The cookie is the
token itself: it holds over restarts, ends with the token, and nothing is kept of who is signed in. Browsers send it to
this host alone (SameSite=Strict, no Domain), scripts cannot read it (HttpOnly), and where the public address is https
it goes over nothing else (Secure).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.serve.rendering import read_form, render_page
from agent.serve.users import Access
from agent.serve.v1.requests import RequestError

FIELD = "token"  # of the address and of the form
COOKIE_SECONDS = 30 * 24 * 3600
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="convagent"'}
UNKNOWN = "This token is nobody's. Perhaps there is a newer one."
LARGEST = 256_000  # bytes of a request's body
LARGEST_UPLOAD = 50_000_000  # bytes, in memory while they arrive
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
SIGN_IN_HEADERS = {
    "Referrer-Policy": "origin",  # the token, where it stands in the address, goes nowhere
    "HX-Refresh": "true",  # a part of a page that is asked for by a script: load the whole
}


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """Whom a guard lets in, and what it keeps of whoever was let in."""

    access: Access
    cookie: str  # its name
    is_secure: bool = False  # whether the cookie goes over https alone
    names: frozenset[str] = frozenset()  # of this server, beside `localhost` and addresses
    public_origin: str = ""  # such as https://ask.example.org, where a proxy stands before it
    open_paths: tuple[str, ...] = ("/health", "/sign-in", "/static")  # that need no token, with all below them
    api_paths: tuple[str, ...] = ("/v1",)  # whose errors are JSON, in OpenAI's form
    upload_path: str = ""  # to which larger bodies may be sent

    def routes(self) -> list[Route]:
        return [
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        ]

    def find_user(self, request: Request) -> str | None:
        """By the token that a request shows: `Authorization: Bearer`, or else the cookie."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return self.access.find_user(
            token.strip() if kind.lower() == "bearer" else request.cookies.get(self.cookie, "")
        )

    def exchange_address(self, request: Request) -> Response | None:
        """The reply to an address with a token: the same without it, and the cookie. None for any other address.

        Where another site led here, or a file (`--open`), the browser would not show the cookie on a redirection: a
        page of our own does it. With several users it is a button, so that nobody is signed in as somebody else.
        """
        token = request.query_params.get(FIELD)
        if token is None or request.method not in SAFE:
            return None
        user, target = self.access.find_user(token), _leave_token_out(request)
        if user is None:
            if self.find_user(request) is not None:
                return RedirectResponse(target, 303, SIGN_IN_HEADERS)
            return self._render(401, target, UNKNOWN)
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            if not self.access.is_for_several:
                return self._keep(self._render(200, target, go_on=True), token)
            return self._render(200, target, f"Another site led you here, to be signed in as {user}.", token)
        return self._keep(RedirectResponse(target, 303, SIGN_IN_HEADERS), token)

    def ask_for_token(self, request: Request) -> Response:
        """The page for whoever shows no token: it says where one stands."""
        return self._render(401, _leave_token_out(request))

    async def sign_in(self, request: Request) -> Response:
        form = await read_form(request)
        token, target = form.get(FIELD, "").strip(), _to_own_path(form.get("back", "/"))
        if self.access.find_user(token) is None:
            return self._render(401, target, UNKNOWN)
        return self._keep(RedirectResponse(target, 303), token)

    async def sign_out(self, _request: Request) -> Response:
        response = self._render(200, "/", "You are signed out.")
        response.delete_cookie(self.cookie, secure=self.is_secure, httponly=True, samesite="strict")
        return response

    def _keep(self, response: Response, token: str) -> Response:
        response.set_cookie(
            self.cookie, token, max_age=COOKIE_SECONDS, secure=self.is_secure, httponly=True, samesite="strict"
        )
        return response

    def _render(self, status: int, target: str, problem: str = "", token: str = "", *, go_on: bool = False) -> Response:
        values = {
            "target": target,
            "problem": problem,
            "token": token,
            "go_on": go_on,
            "is_for_several": self.access.is_for_several,
        }
        return render_page("sign_in.html", values, status, SIGN_IN_HEADERS | (CHALLENGE if status == 401 else {}))


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
        """Note whose request it is, or give the reply to a token in an address, or to none."""
        request, policy, path = Request(scope), self.policy, scope["path"]
        if not self._is_api(path) and (exchanged := policy.exchange_address(request)):
            return exchanged
        user = policy.find_user(request)
        scope.setdefault("state", {})["user"] = user  # None where nobody was let in: nothing of anybody may be shown
        if user is not None or _is_below(path, policy.open_paths):
            return None
        if not self._is_api(path):
            return policy.ask_for_token(request)
        what = "the token of this server is needed, as `Authorization: Bearer TOKEN` (the API key of OpenAI's clients)"
        return self._refuse(scope, 401, what, headers=CHALLENGE, code="invalid_api_key")

    def _is_cross_site(self, headers: Headers) -> bool:
        """By what browsers say of a request; other clients say neither and are nobody's cat's-paw."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        own = (None, f"http://{headers['host']}", self.policy.public_origin or None)
        return site not in (None, "same-origin", "none") or origin not in own

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """The whole body, or the refusal of one that is too large. Raises `ClientDisconnect`."""
        is_upload = scope["method"] == "POST" and scope["path"] == self.policy.upload_path
        largest, body = LARGEST_UPLOAD if is_upload else LARGEST, bytearray()
        async for chunk in Request(scope, receive).stream():
            body += chunk
            if len(body) > largest:
                return self._refuse(scope, 413, f"the request is larger than {largest // 1000} kB")
        return bytes(body)

    def _is_api(self, path: str) -> bool:
        return _is_below(path, self.policy.api_paths)

    def _refuse(
        self, scope: Scope, status: int, what: str, *, headers: Mapping[str, str] | None = None, code: str | None = None
    ) -> Response:
        if not self._is_api(scope["path"]):
            return PlainTextResponse(f"convagent: {what}\n", status, headers)
        return JSONResponse(RequestError(status, what, code=code).body, status, headers)


def _is_below(path: str, parents: Iterable[str]) -> bool:
    return any(path == parent or path.startswith(f"{parent}/") for parent in parents)


def _leave_token_out(request: Request) -> str:
    """The path that was asked for, and its query without the token."""
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != FIELD]
    path = request.url.path if request.method in SAFE else "/"
    return _to_own_path(path + (f"?{urlencode(rest)}" if rest else ""))


def _to_own_path(path: str) -> str:
    """A path of this server, whatever was given: `//elsewhere.example` is none."""
    return "/" + path.lstrip("/\\") if path.isprintable() else "/"


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
