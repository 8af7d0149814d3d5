"""Whom the server lets in: whoever shows the token, and nobody else, whatever is asked for and however."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.models.registry import STAYS, STAYS_WITH_SERVER, describe_destination
from agent.serve.server import ServerRequest, list_warnings, open_access
from agent.serve.users import Access, find_own_token, hash_token, make_token
from indexes.passage_index import PassageIndex
from tests import within
from tests.serving import ASKED, NO_MODELS, Server, read_all, serving
from tests.stand_in import standing_in


@pytest.fixture
def stranger(server: Server) -> Iterator[httpx.Client]:
    """Another user of the machine, or a browser that is not signed in."""
    with server.open_stranger() as opened:
        yield opened


PAGES = [("GET", "/"), ("GET", "/chats/1"), ("GET", "/progress"), ("GET", "/nowhere")]
PAGES += [("POST", "/ask"), ("POST", "/statements"), ("POST", "/chats/1/delete"), ("HEAD", "/"), ("POST", "/sign-out")]
API = [("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("GET", "/v1"), ("GET", "/v1/nowhere")]
SHOWN: list[dict[str, str]] = [{}, {"Authorization": "Bearer"}, {"Authorization": "Bearer \xff"}]
SHOWN += [{"Authorization": "Basic Om5vbmU="}, {"Cookie": "convagent-{port}=wrong"}]


def test_without_the_token_nothing_is_told(stranger: httpx.Client, server: Server) -> None:
    port = str(httpx.URL(server.address).port)
    for (method, path), shown in product([*PAGES, *API], SHOWN):
        headers = [(name.encode(), value.replace("{port}", port).encode("latin-1")) for name, value in shown.items()]
        refused = stranger.request(method, path, headers=headers)
        assert (method, path, refused.status_code) == (method, path, 401)
        assert refused.headers["www-authenticate"].startswith("Bearer")
        if path.startswith("/v1"):
            error = refused.json()["error"]
            assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
        elif method != "HEAD":
            assert "convagent serve" in refused.text
            assert "serve-token" in refused.text
            assert server.token not in refused.text
    assert stranger.get("/health").json() == {"status": "ok"}


def test_a_browser_gets_a_cookie_for_the_token_which_leaves_the_address(server: Server, stranger: httpx.Client) -> None:
    """After a link of another site by a page: there, a redirection would not show a SameSite=Strict cookie."""
    exchanged = stranger.get("/", params={"q": "bread & jam", "token": server.token})
    assert (exchanged.status_code, exchanged.headers["location"]) == (303, "/?q=bread+%26+jam")
    cookie = exchanged.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age="))
    assert "Domain" not in cookie
    assert "Secure" not in cookie
    page = stranger.get(exchanged.headers["location"])
    assert (page.status_code, server.token in page.text) == (200, False)
    linked = stranger.get("/", params={"token": server.token}, headers={"sec-fetch-site": "cross-site"})
    assert ('content="0; url=/">' in linked.text, server.token in linked.text) == (True, False)
    assert linked.headers["referrer-policy"] == "origin"
    again = stranger.get("/", params={"token": "an old one"})
    assert (again.status_code, again.headers["location"]) == (303, "/")
    assert stranger.post("/sign-out").status_code == 200
    assert stranger.get("/").status_code == 401


def test_a_token_can_be_typed_in(server: Server, stranger: httpx.Client) -> None:
    wrong = stranger.post("/sign-in", data={"token": "guess", "back": "/chats/3"})
    assert (wrong.status_code, "nobody" in wrong.text) == (401, True)
    assert 'name="back" value="/chats/3"' in wrong.text
    signed_in = stranger.post("/sign-in", data={"token": f" {server.token} ", "back": "//elsewhere.example"})
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/elsewhere.example")
    assert stranger.get("/").status_code == 200


LEADING_ELSEWHERE = [  # to browsers `//` and `/\` begin a host, and a tab is nothing
    ("//elsewhere.example/", "/elsewhere.example/"),
    ("/%09/elsewhere.example/", "/elsewhere.example/"),
    ("/\\elsewhere.example/", "/%5Celsewhere.example/"),
    ("/%0d%0aSet-Cookie:a=b", "/Set-Cookie:a=b"),
]


def test_the_token_leads_nowhere_else(server: Server) -> None:
    for path, target in LEADING_ELSEWHERE:
        lines = [f"GET {path}?token={server.token} HTTP/1.1", "Host: localhost", "Connection: close", "", ""]
        with server.connect() as connection:
            connection.sendall("\r\n".join(lines).encode())
            reply = read_all(connection).decode()
        assert reply.startswith("HTTP/1.1 303")
        assert re.findall("^location: (.*)\r$", reply, re.MULTILINE) == [target]
        assert "\nSet-Cookie:a=b" not in reply


def test_the_token_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "serve-token"
    before = os.umask(0)
    try:
        token = find_own_token(path, anew=False)
    finally:
        os.umask(before)
    assert (stat.S_IMODE(path.stat().st_mode), len(token) >= 43) == (0o600, True)
    path.chmod(0o640)  # others of the group may have read it
    renewed = find_own_token(path, anew=False)
    assert (stat.S_IMODE(path.stat().st_mode), renewed != token) == (0o600, True)
    path.write_text("short\n")
    assert len(find_own_token(path, anew=False)) >= 43
    access = Access(hash_token(token))
    assert access.find_user(token) == ""
    assert not [
        other for other in ("", token[:-1], f"{token} ", make_token(), "\ud800") if access.find_user(other) is not None
    ]


def test_a_bookmark_lives_until_there_is_a_new_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVAGENT_DATA", str(tmp_path / "data"))
    tokens = []
    started = ServerRequest(tmp_path, model="none")
    for request in (started, started, replace(started, new_token=True), replace(started, incognito=True)):
        access, token = open_access(request)
        assert [access.find_user(shown) for shown in (token, "", "guess")] == ["", None, None]
        tokens.append(token)
    assert tokens[0] == tokens[1]
    assert len(set(tokens)) == 3  # a new one, and one for this time alone
    assert (tmp_path / "data" / "serve-token").read_text().strip() == tokens[2]


def test_without_a_token_the_terminal_says_what_that_means(tmp_path: Path, example_index: PassageIndex) -> None:
    with serving(example_index.directory, tmp_path, *NO_MODELS, "--no-token") as running:
        assert running.token == ""
        with running.open_client() as anybody:
            assert anybody.get("/").status_code == 200
            assert anybody.post("/v1/chat/completions", json=ASKED).status_code == 200
        assert running.interrupt() == 0
        assert running.process.stderr
        assert "any other user of this machine included, can ask, read and delete" in running.process.stderr.read()
    assert not (tmp_path / "serve-token").exists()


NO_ORIGINS = (
    "ask.example.org",
    "https://",
    "ftp://a",
    "https://u:p@a.b",
    "https://a.b?q",
    "https://a:x",
    "https://a.b/c",
)
MISTAKEN = [
    ("--users users.json --no-token", "--users and --no-token exclude each other"),
    ("--no-token --new-token", "--new-token is for a server with one token"),
    *((f"--public-url {url}", "--public-url is no address of a server") for url in NO_ORIGINS),
    ("--allow-host two/words", "'two/words' is no name of a host"),
]


def test_flags_that_cannot_be_meant_are_told(tmp_path: Path, example_index: PassageIndex) -> None:
    for flags, told in MISTAKEN:
        index = ("--index", example_index.directory)
        result = within.convagent("serve", *index, *NO_MODELS, *flags.split(), CONVAGENT_DATA=str(tmp_path))
        assert (result.returncode, told in result.stderr) == (2, True), result.stderr
    assert list_warnings("127.0.0.1", "", needs_token=True) == ()
    assert len(list_warnings("192.0.2.1", "", needs_token=False)) == 2
    assert list_warnings("192.0.2.1", "https://ask.example.org", needs_token=True) == ()


# Behind a proxy


def test_a_public_address_has_its_name_its_origin_and_a_cookie_for_https_alone(
    tmp_path: Path, example_index: PassageIndex
) -> None:
    public = ("--public-url", "https://Ask.example.org", "--allow-host", "box.lan")
    with serving(example_index.directory, tmp_path, *NO_MODELS, *public) as running:
        token = re.search(r"https://ask\.example\.org/\?token=(\S+)", running.said)
        assert token
        with running.open_stranger() as proxy:
            proxy.headers["host"] = "ask.example.org"
            cookie = proxy.get("/", params={"token": token[1]}).headers["set-cookie"]
            assert cookie.startswith("__Host-convagent=")
            assert "; Secure" in cookie
            proxy.headers["authorization"] = f"Bearer {token[1]}"
            for name, status in (("box.lan:8080", 200), ("evil.example", 421)):
                forwarded = {"x-forwarded-host": "ask.example.org", "x-forwarded-for": "127.0.0.1"}
                assert proxy.get("/", headers={"host": name} | forwarded).status_code == status
            for origin, status in (("https://ask.example.org", 303), ("https://evil.example", 403)):
                posted = proxy.post("/statements", data={"text": "I bake."}, headers={"origin": origin})
                assert posted.status_code == status


# Where things go


def test_page_and_terminal_say_where_things_go(server: Server, tmp_path: Path, example_index: PassageIndex) -> None:
    assert server.said.splitlines()[-1].endswith(STAYS)
    assert STAYS in server.get().text
    with (
        standing_in() as address,
        serving(example_index.directory, tmp_path, "-m", address, "--embedder", "none", "--incognito") as running,
    ):
        page = running.get().text
        told = f"and statements go to the server {httpx.URL(address).netloc.decode()} on this machine."
        assert running.said.splitlines()[-1].endswith(told)
        assert (told in page, STAYS in page) == (True, False)


GOES: list[tuple[str, Any, bool, str]] = [
    ("none", "minilm", True, STAYS_WITH_SERVER),
    ("hf:a/b", "hf:c/d", False, STAYS),
    ("https://api.example.org/v1#big", None, False, "the server api.example.org, over the network"),
    ("http://key:word@api.example.org:1/v1", None, True, "the server api.example.org:1, over the network"),
    ("none", "https://api.example.org/v1", False, "the server api.example.org, over the network"),
]


def test_a_server_that_is_asked_is_named() -> None:
    described = [describe_destination(model, embedder, is_shared=is_shared) for model, embedder, is_shared, _ in GOES]
    assert [told for told, (*_, expected) in zip(described, GOES, strict=True) if expected not in told] == []
    assert not [told for told in described if "word" in told.replace("words", "")]
