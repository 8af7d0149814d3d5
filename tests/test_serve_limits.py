"""What clients may cost the server: those that leave, trickle, idle, crowd or send what nobody can read."""

import json
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import psutil
import pytest

from agent.serve.connections import KEEP_ALIVE_SECONDS, REQUEST_SECONDS
from agent.serve.request_queue import MAX_WAITING_OF_USER
from indexes.passage_index import PassageIndex
from schemas.errors import MissingError
from tests.conftest import PATIENCE
from tests.serving import ASKED, NO_MODELS, SHADE, Server, read_all, serving, wait_until
from tests.stand_in import WORKING, StandIn, standing_in

ARGUMENTS = (*NO_MODELS, "--incognito")
SOON = 60.0  # seconds that are many times what it takes, and far from a minute's time-out


# Bodies that nobody can read

BODIES = [
    ("deep", b'{"model": "convagent", "messages": [], "tools": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    ("no UTF-8", b'{"model": "convagent", "messages": [{"role": "user", "content": "\xff\xfe"}]}', 400),
    ("half a character", b'{"model": "convagent", "messages": [{"role": "user", "content": "\\ud800"}]}', 400),
    ("5,000 digits", b'{"model": "convagent", "n": ' + b"9" * 5000 + b"}", 400),
    ("too large", b'{"model": "' + b"x" * 300_000 + b'"}', 413),
]
DIGITS = "9" * 5000
PATHS = [f"/chats/{DIGITS}", f"/?from={DIGITS}", f"/?q={'a' * 5000}", "/?from=-1", "/?from=²", f"/asked/{DIGITS}"]
PATHS += ["/chats/99999999999999999999", "/chats/999999999999999999", "/chats/٣", "/%ff%fe", "/?q=%ff", "/?q=%00"]
FORMS = [{"question": "?", "chat": DIGITS}, {"question": "?", "chat": "²"}, {"question": "\x00"}, {"question": "�"}]
RAW = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01",  # TLS
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"POST /ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3 + b"\x00garbage\r\n\r\n",
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex) -> Iterator[Server]:
    """A server that ends in good order, whatever was done to it."""
    with serving(example_index.directory, tmp_path_factory.mktemp("data"), *ARGUMENTS) as running:
        yield running
        assert running.interrupt() == 0
        assert running.count_tracebacks() == 0


def test_what_nobody_can_read_is_refused_without_a_traceback(running: Server) -> None:
    """Bodies, numbers and bytes of addresses and forms, and what is no HTTP."""
    with running.open_client() as client:
        assert client.post("/v1/chat/completions", content=iter([b"x" * 100_000] * 3)).status_code == 413
        for name, body, status in BODIES:
            refused = client.post("/v1/chat/completions", content=body)
            assert (name, refused.status_code) == (name, status)
            assert refused.json()["error"]["type"] == "invalid_request_error"
            assert client.post("/statements", content=body).status_code < 500
        assert {client.get(path).status_code for path in PATHS} <= {200, 404}
        assert {client.post("/ask", data=form).status_code for form in FORMS} <= {200, 400, 404}
        statement = {"text": "x" * 501, "back": f"/chats/{DIGITS}"}
        assert client.post("/statements", data=statement).status_code == 400
    for data in RAW:
        with closing(running.connect()) as connection:
            connection.sendall(data)
            assert read_all(connection).startswith(b"HTTP/1.1 4"), data[:30]


# Clients that leave, trickle and idle


def is_busy(client: httpx.Client) -> bool:
    """Whether a question is turned away. One that is not, is left at once, and gives its place back."""
    with client.stream("POST", "/v1/chat/completions", json=ASKED | {"stream": True}) as reply:
        assert reply.status_code in (200, 503)
        if reply.status_code == 503:
            reply.read()
            assert reply.headers["retry-after"].isdecimal()
            assert reply.json()["error"]["code"] == "busy"
        return reply.status_code == 503


def test_a_model_that_hangs_keeps_neither_the_queue_nor_the_server(tmp_path: Path, example_index: PassageIndex) -> None:
    """It hangs with the first question. Clients behind it leave without streaming, and their places are free."""
    with (
        standing_in() as address,
        serving(example_index.directory, tmp_path, "-m", address, "--embedder", "none", "--incognito") as running,
        ThreadPoolExecutor(1) as pool,
        running.open_client() as client,
        ExitStack() as stack,
    ):
        StandIn.replies = [WORKING] * 100
        head = running.write_head("POST /v1/chat/completions HTTP/1.1", f"Content-Length: {len(json.dumps(ASKED))}")
        asking_at_once = [stack.enter_context(closing(running.connect())) for _ in range(MAX_WAITING_OF_USER + 5)]
        for connection in asking_at_once:
            connection.sendall(head + json.dumps(ASKED).encode())
        wait_until(lambda: len(select.select(asking_at_once, [], [], 0)[0]) == 5)  # those that are turned away
        assert is_busy(client)
        for connection in asking_at_once:
            connection.close()
        wait_until(lambda: not is_busy(client))
        StandIn.asked = []
        page = client.post("/ask", data={"question": SHADE})
        wait_until(lambda: bool(StandIn.asked))
        client.post(f"{page.url.path}/stop")
        wait_until(lambda: "data-working" not in (stopped := client.get(page.url)).text and "stopped" in stopped.text)
        StandIn.replies = []
        assert client.post("/v1/chat/completions", json=ASKED).status_code == 200
        StandIn.replies, StandIn.asked = [WORKING] * 100, []
        said = [{"role": "assistant", "content": "Hostas grow well."}, {"role": "user", "content": "Which of them?"}]
        asked = ASKED | {"messages": [*ASKED["messages"], *said]}  # the model is asked something about it
        asking = pool.submit(client.post, "/v1/chat/completions", json=asked)
        wait_until(lambda: bool(StandIn.asked))
        running.process.terminate()
        assert running.process.wait(SOON) == 0
        assert asking.exception(PATIENCE) or asking.result().status_code >= 500
        assert running.count_tracebacks() == 0


def test_a_model_server_that_says_nothing_at_the_start_holds_up_nothing_else(
    tmp_path: Path, example_index: PassageIndex
) -> None:
    with standing_in() as address:
        StandIn.models = WORKING
        arguments = ("-m", address, "--embedder", "none", "--incognito")
        with serving(example_index.directory, tmp_path, *arguments) as running, running.open_client() as client:
            assert client.get("/health").status_code == client.get("/").status_code == 200
            page = client.post("/ask", data={"question": SHADE})
            assert "data-working" in page.text
            client.post(f"{page.url.path}/stop")
            wait_until(lambda: "The answer was stopped" in client.get(page.url).text)
            asking = client.build_request("POST", "/ask", data={"question": SHADE})
            client.send(asking)  # it waits when the server ends
            running.process.terminate()
            assert running.process.wait(SOON) == 0
            assert running.count_tracebacks() == 0


def test_a_model_server_that_is_not_there_ends_the_start(tmp_path: Path, example_index: PassageIndex) -> None:
    arguments = ("-m", "http://127.0.0.1:9/v1", "--embedder", "none", "--incognito")
    with serving(example_index.directory, tmp_path, *arguments) as running:
        assert running.process.stderr
        assert "http://127.0.0.1:9/v1: the server cannot be reached" in running.process.stderr.read()
        assert running.process.wait(SOON) == MissingError.exit_code


def test_requests_that_do_not_come_to_an_end_are_ended(server: Server) -> None:
    """Each begins and then says a byte now and again, or nothing at all."""
    begun = time.monotonic()
    openings = {
        "nothing": b"",
        "half a head": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        "half a body": server.write_head("POST /ask HTTP/1.1", "Content-Length: 1000") + b"question=",
        "half a body for /v1": server.write_head("POST /v1/chat/completions HTTP/1.1", "Content-Length: 99") + b"{",
        "a refused body": b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
        "idle after a reply": server.write_head("GET /health HTTP/1.1"),
    }
    with ExitStack() as stack, ThreadPoolExecutor(len(openings) * 2) as pool:
        connections = {name: stack.enter_context(closing(server.connect())) for name in openings}
        ended = threading.Event()
        for name, opening in openings.items():
            connections[name].sendall(opening)
        for name in ("half a head", "half a body", "half a body for /v1", "a refused body"):
            pool.submit(trickle, connections[name], ended)
        replies = dict(zip(connections, pool.map(read_all, connections.values()), strict=True))
        ended.set()
    assert time.monotonic() - begun < max(REQUEST_SECONDS, KEEP_ALIVE_SECONDS) + SOON
    statuses = {name: re.findall(rb"HTTP/1.1 (\d+)", reply) for name, reply in replies.items()}
    assert statuses == {
        "nothing": [],
        "half a head": [b"408"],
        "half a body": [b"408"],
        "half a body for /v1": [b"408"],
        "a refused body": [b"401"],
        "idle after a reply": [b"200"],
    }


def trickle(connection: socket.socket, ended: threading.Event) -> None:
    """A byte a second."""
    while not ended.wait(1.0):
        try:
            connection.sendall(b"x")
        except OSError:
            return


# Crowds


def test_a_crowd_is_answered(running: Server) -> None:
    """200 idle connections, and 200 requests at once, most for a page: each is answered, and nothing grows."""

    def send(number: int) -> int:
        with running.open_client() as client:
            barrier.wait(PATIENCE)
            if number % 5 == 0:
                return client.post("/v1/chat/completions", json=ASKED).status_code
            return client.get("/health" if number % 2 else "/").status_code

    with ExitStack() as stack:
        process = psutil.Process(running.process.pid)
        for _ in range(200):
            stack.enter_context(closing(running.connect()))
        sizes, barrier, pool = [], threading.Barrier(200), stack.enter_context(ThreadPoolExecutor(200))
        for _ in range(3):
            statuses = list(pool.map(send, range(200)))
            assert set(statuses) <= {200, 303, 503}
            assert statuses.count(200) > 100
            sizes.append(process.memory_info().rss)
        assert sizes[-1] - sizes[1] < 50_000_000, sizes


def test_few_files_are_enough_for_many_connections(tmp_path: Path, example_index: PassageIndex) -> None:
    """Where the system lets the process open few files, idle connections give way, and are never too many."""
    with serving(example_index.directory, tmp_path, *ARGUMENTS, files=256) as running, ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(closing(running.connect()))
        with running.open_client() as client:
            wait_until(lambda: client.get("/health").status_code == 200)
            reply = client.post("/v1/chat/completions", json=ASKED)
            assert reply.status_code == 200, reply.text
        assert running.interrupt() == 0
        assert running.count_tracebacks() == 0
