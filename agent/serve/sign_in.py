"""How a browser signs in: the token of the printed address becomes a cookie, and leaves the address bar.

The cookie is the token itself: it holds over restarts, ends with the token, and nothing is kept of who is signed in.
Browsers send it to this host alone (SameSite=Strict, no Domain), scripts cannot read it (HttpOnly), and where the
public address is https it goes over nothing else (Secure).
"""

import base64
import hashlib
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from agent.serve.rendering import read_form, render_page
from agent.serve.users import Access

FIELD = "token"  # of the address and of the form
COOKIE_SECONDS = 30 * 24 * 3600
CROSS_SITE = ("cross-site", "same-site")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="convagent"'}
UNKNOWN = "This token is nobody's. Perhaps there is a newer one."
STYLE = (
    ":root{color-scheme:light dark}body{font:1.05rem/1.6 system-ui,sans-serif;max-width:36rem;margin:15vh auto;"
    "padding:0 1.25rem}input,button{font:inherit;padding:.4rem .7rem;max-width:100%}code{overflow-wrap:anywhere}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "origin",  # the token, where it stands in the address, goes nowhere
    "HX-Refresh": "true",  # a part of a page that is asked for by a script: load the whole
}


@dataclass(frozen=True, slots=True)
class SignIn:
    """Exchanges tokens for cookies."""

    access: Access
    cookie: str  # its name
    is_secure: bool = False  # whether the cookie goes over https alone

    def routes(self) -> list[Route]:
        return [
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        ]

    def read_token(self, request: Request) -> str:
        """The token that a request shows: `Authorization: Bearer`, or else the cookie."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else request.cookies.get(self.cookie, "")

    def exchange_address(self, request: Request) -> Response | None:
        """The reply to an address with a token: the same without it, and the cookie. None for any other address.

        Where another site led here, the browser would not show the cookie on a redirection: a page of our own does it.
        With several users it is a button, so that nobody is signed in as somebody else by a link.
        """
        token = request.query_params.get(FIELD)
        if token is None or request.method not in ("GET", "HEAD"):
            return None
        user, target = self.access.find_user(token), _leave_token_out(request)
        if user is None:
            if self.access.find_user(self.read_token(request)) is not None:
                return RedirectResponse(target, 303, HEADERS)
            return self.ask_for_token(request, UNKNOWN)
        if request.headers.get("sec-fetch-site") not in CROSS_SITE:
            return self._keep(RedirectResponse(target, 303, HEADERS), token)
        if self.access.is_for_several:
            return self._render(
                200, target, problem=f"Another site led you here, to be signed in as {user}.", token=token
            )
        return self._keep(self._render(200, target, go_on=True), token)

    def ask_for_token(self, request: Request, problem: str = "") -> Response:
        """The page for whoever shows no token: it says where one stands."""
        return self._render(401, _leave_token_out(request), problem=problem)

    async def sign_in(self, request: Request) -> Response:
        form = await read_form(request)
        token, target = form.get(FIELD, "").strip(), _to_own_path(form.get("back", "/"))
        if self.access.find_user(token) is None:
            return self._render(401, target, problem=UNKNOWN)
        return self._keep(RedirectResponse(target, 303), token)

    async def sign_out(self, _request: Request) -> Response:
        response = self._render(200, "/", problem="You are signed out.")
        response.delete_cookie(self.cookie, secure=self.is_secure, httponly=True, samesite="strict")
        return response

    def _keep(self, response: Response, token: str) -> Response:
        response.set_cookie(
            self.cookie, token, max_age=COOKIE_SECONDS, secure=self.is_secure, httponly=True, samesite="strict"
        )
        return response

    def _render(self, status: int, target: str, *, problem: str = "", token: str = "", go_on: bool = False) -> Response:
        values = {
            "style": STYLE,
            "target": target,
            "problem": problem,
            "token": token,
            "go_on": go_on,
            "is_for_several": self.access.is_for_several,
        }
        return render_page("sign_in.html", values, status, HEADERS | (CHALLENGE if status == 401 else {}))


def _leave_token_out(request: Request) -> str:
    """The path that was asked for, and its query without the token."""
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != FIELD]
    path = request.url.path if request.method in ("GET", "HEAD") else "/"
    return _to_own_path(path + (f"?{urlencode(rest)}" if rest else ""))


def _to_own_path(path: str) -> str:
    """A path of this server, whatever was given: `//elsewhere.example` is none."""
    return "/" + path.lstrip("/\\") if path.isprintable() else "/"


def make_sign_in(access: Access, port: int, *, is_secure: bool) -> SignIn:
    """Cookies know no ports, so servers side by side have their own; `__Host-` keeps those of subdomains out."""
    return SignIn(access, "__Host-convagent" if is_secure else f"convagent-{port}", is_secure)
