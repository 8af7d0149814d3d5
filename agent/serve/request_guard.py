"""What every request has to pass before anything reads it: to whom it is, from which site, whose it is, how large.

It stands around any ASGI application. Who asks is `scope["state"]["user"]` inside ("" where there is only one person).

A browser signs in by the printed address, whose token becomes a cookie and leaves the address bar. The cookie is the
token itself: it holds over restarts, ends with the token, and nothing is kept of who is signed in. Browsers send it to
this host alone (SameSite=Strict, no Domain), scripts cannot read it (HttpOnly), and where the public address is https
it goes over nothing else (Secure).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

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
OPEN_PATHS = ("/health", "/sign-in", "/static")  # that need no token, with all below them
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
class RequestGuard:
    """Turns away what another site sends through the person's browser, who shows no token, and what is too large."""

    access: Access
    cookie: str  # its name
    is_secure: bool = False  # whether the cookie goes over https alone
    names: frozenset[str] = frozenset()  # of this server, beside `localhost` and addresses
    public_origin: str = ""  # such as https://ask.example.org, where a proxy stands before it
    api_path: str = "/v1"  # below which errors are JSON, in OpenAI's form; "": everywhere
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
            return self.ask_for_token(target, UNKNOWN)
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            if not self.access.is_for_several:
                return self._keep(self._render({"target": target, "go_on": True}), token)
            told = f"Another site led you here, to be signed in as {user}."
            return self._render({"target": target, "problem": told, "token": token})
        return self._keep(RedirectResponse(target, 303, SIGN_IN_HEADERS), token)

    async def sign_in(self, request: Request) -> Response:
        form = await read_form(request)
        token, target = form.get(FIELD, "").strip(), _to_own_path(form.get("back", "/"))
        if self.access.find_user(token) is None:
            return self.ask_for_token(target, UNKNOWN)
        return self._keep(RedirectResponse(target, 303), token)

    async def sign_out(self, _request: Request) -> Response:
        response = self._render({"target": "/", "problem": "You are signed out."})
        response.delete_cookie(self.cookie, secure=self.is_secure, httponly=True, samesite="strict")
        return response

    def _keep(self, response: Response, token: str) -> Response:
        response.set_cookie(
            self.cookie, token, max_age=COOKIE_SECONDS, secure=self.is_secure, httponly=True, samesite="strict"
        )
        return response

    def ask_for_token(self, target: str, problem: str = "") -> Response:
        """The page for whoever shows no token: it says where one stands."""
        return self._render({"target": target, "problem": problem}, 401)

    def _render(self, values: Mapping[str, object], status: int = 200) -> Response:
        values = {"problem": "", "token": "", "go_on": False, "is_for_several": self.access.is_for_several, **values}
        return render_page("sign_in.html", values, status, SIGN_IN_HEADERS | (CHALLENGE if status == 401 else {}))

    def protect(self, app: ASGIApp) -> ASGIApp:
        """An application that is asked nothing but what passes."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return

            async def with_policy(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(scope=message)
                    for name, value in HEADERS.items():
                        headers.setdefault(name, value)
                await send(message)

            whole: list[Message] = []

            async def replay() -> Message:
                return whole.pop() if whole else await receive()

            try:
                reply = self._admit(Request(scope))
                if reply is None:
                    whole.append(await self._read_body(Request(scope, receive)))
            except ClientDisconnect:  # half a request is none
                return
            except RequestError as error:
                reply = self._refuse(scope["path"], error)
            await (reply or app)(scope, replay, with_policy)

        return answer

    def _admit(self, request: Request) -> Response | None:
        """Note whose request it is, or give the reply to a token in an address, or to none.

        Raises `RequestError` for what is for another server, from another site, or without the token of `/v1`.
        """
        path = request.scope["path"]
        if not _is_ours(request.headers.get("host", ""), self.names):
            raise RequestError(421, "this server has no such name (--allow-host adds one)")
        if request.method not in SAFE and _is_cross_site(request.headers, self.public_origin):
            raise RequestError(403, "this request came from another site")
        is_api = _is_below(path, self.api_path)
        if not is_api and (exchanged := self.exchange_address(request)):
            return exchanged
        user = request.state.user = self.find_user(request)  # None: nothing of anybody may be shown
        if user is None and is_api:
            what = "the token of this server is needed, as `Authorization: Bearer TOKEN` (an OpenAI client's API key)"
            raise RequestError(401, what, code="invalid_api_key")
        if user is None and not any(_is_below(path, opened) for opened in OPEN_PATHS):
            return self.ask_for_token(_leave_token_out(request))
        return None

    async def _read_body(self, request: Request) -> Message:
        """The whole body. Raises `RequestError` for one that is too large, and `ClientDisconnect`."""
        is_upload = request.method == "POST" and request.scope["path"] == self.upload_path
        largest, body = LARGEST_UPLOAD if is_upload else LARGEST, bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > largest:
                raise RequestError(413, f"the request is larger than {largest // 1000} kB")
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    def _refuse(self, path: str, error: RequestError) -> Response:
        headers = CHALLENGE if error.status == 401 else None
        if _is_below(path, self.api_path):
            return JSONResponse(error.body, error.status, headers)
        return PlainTextResponse(f"convagent: {error}\n", error.status, headers)


def _is_cross_site(headers: Headers, public_origin: str) -> bool:
    """By what browsers say of a request; other clients say neither and are nobody's cat's-paw."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = (None, f"http://{headers['host']}", public_origin or None)
    return site not in (None, "same-origin", "none") or origin not in own


def _is_below(path: str, parent: str) -> bool:
    return path == parent or path.startswith(f"{parent}/")


def _leave_token_out(request: Request) -> str:
    """The path that was asked for, and its query without the token."""
    url = request.url.remove_query_params(FIELD)
    path = url.path if request.method in SAFE else "/"
    return _to_own_path(path + (f"?{url.query}" if url.query else ""))


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
