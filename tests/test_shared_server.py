"""Several workers share one server: how many requests are under way, what a busy server does to that, what it all took.

The server is a stand-in whose replies depend on what it is asked and on nothing else, so that runs can be compared.
"""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.models.cancellation import CancellationToken
from indexes.passage_index import PassageIndex
from tests import within
from tests.conftest import EXAMPLES, PATIENCE
from tests.stand_in import LISTED, USAGE, StandIn, fault, said, standing_in

Misbehaviour = Callable[["SharedServer", int], bool]
TOPICS = 3  # of the examples


class SharedServer(StandIn):
    """Counts the requests that are under way. What `misbehave` does with one, given how many are, is its reply."""

    lock = threading.Lock()
    crowded: threading.Event  # once `crowd` requests were under way at a time
    crowd: int
    under_way: int
    most_under_way: int
    misbehave: ClassVar[Misbehaviour]

    @classmethod
    def begin(cls, crowd: int, misbehave: Misbehaviour) -> None:
        StandIn.asked = []
        cls.crowd, cls.misbehave = crowd, misbehave
        cls.under_way, cls.most_under_way, cls.crowded = 0, 0, threading.Event()

    def do_POST(self) -> None:  # noqa: N802  # as http.server calls it
        server = type(self)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            self.asked.append(body)
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
            under_way = server.under_way
        if under_way >= server.crowd:
            server.crowded.set()
        server.crowded.wait(PATIENCE)
        with server.lock:  # before the reply, after which the client may send its next
            server.under_way -= 1
        if not self.misbehave(under_way):
            last = body["messages"][-1]["content"].split("\n\n")[0]
            text = json.dumps({"text": last}) if "response_format" in body else f"It is about {last.lower()}"
            self._send(200, said(text, usage=USAGE))

    def send_busy(self, retry_after: str) -> bool:
        data = json.dumps(fault("too many requests")).encode()
        self.send_response(429)
        self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return True

    def drop(self) -> bool:
        self.close_connection = True
        return True

    def is_first_attempt(self) -> bool:
        return self.asked.count(self.asked[-1]) == 1


def behave(_server: SharedServer, _under_way: int) -> bool:
    return False


class Run:
    """Runs over the examples, by what they wrote."""

    def __init__(self, address: str, index: PassageIndex, folder: Path) -> None:
        self._address, self._index, self._folder = address, index, folder

    def answer(self, name: str, *flags: str) -> str:
        """What the run said."""
        arguments = ("--embedder", "none", "--answer", "extract", "--query", "context,hyde", "--no-cache")
        files = (EXAMPLES / "topics.json", "-i", self._index.directory, "-m", self._address, "-o", f"{name}.json")
        done = within.convagent("answer", *files, *arguments, *flags, cwd=self._folder)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def read(self, name: str) -> bytes:
        return (self._folder / f"{name}.json").read_bytes()

    def read_calls(self, name: str) -> list[dict[str, Any]]:
        """Those of a server."""
        lines = (self._folder / f"{name}.trace.jsonl").read_text().splitlines()[1:]
        return [call for line in lines for call in json.loads(line)["calls"] if call["requests"]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with standing_in(SharedServer) as started:
        StandIn.models = (200, LISTED)
        yield started


@pytest.fixture(scope="module")
def run(address: str, example_index: PassageIndex, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """With the run of one worker in it, by the name of `one`."""
    runs = Run(address, example_index, tmp_path_factory.mktemp("runs"))
    SharedServer.begin(1, behave)
    runs.answer("one")
    return runs


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CancellationToken, "pause", lambda *_: None)


@pytest.mark.parametrize(
    ("flags", "most"),
    [(["--jobs", "3", "--concurrency", "2"], 2), (["--concurrency", "3"], 3), (["--jobs", "2"], 2)],
    ids=["fewer requests than jobs", "jobs follow", "requests follow"],
)
def test_so_many_requests_are_under_way_and_never_more(flags: list[str], most: int, run: Run) -> None:
    SharedServer.begin(most, behave)
    run.answer(f"shared{most}{len(flags)}", *flags)
    assert SharedServer.most_under_way == most
    assert run.read(f"shared{most}{len(flags)}") == run.read("one")


def test_what_is_dropped_or_refused_is_sent_again_and_counted(run: Run) -> None:
    """Every request, once: the first half of them is dropped, the others are refused."""

    def refuse_once(server: SharedServer, _under_way: int) -> bool:
        if not server.is_first_attempt():
            return False
        return server.drop() if len(server.asked) % 2 else server.send_busy("0.01")

    SharedServer.begin(1, refuse_once)
    told = run.answer("again")
    assert run.read("again") == run.read("one")
    calls, requests = len(run.read_calls("again")), len(StandIn.asked)
    assert requests == 2 * calls
    assert f"server {requests} requests ({calls} of them again), " in told
    assert f"tokens: {40 * calls:,} of prompts ({30 * calls:,} of them cached there), {7 * calls} of replies" in told


def test_what_a_call_took_that_failed_is_counted(run: Run) -> None:
    def fail(server: SharedServer, _under_way: int) -> bool:
        server._send(500, fault("out of memory"))
        return True

    SharedServer.begin(1, fail)
    told = run.answer("failed")
    assert "15 of them without the model" in told
    calls = run.read_calls("failed")
    assert [(call["requests"], call["reply"], call["tokens_read"]) for call in calls] == [(3, "", 0)] * 15


def test_the_limit_is_of_a_server(example_index: PassageIndex, tmp_path: Path) -> None:
    files = (EXAMPLES / "topics.json", "-i", example_index.directory)
    done = within.convagent("answer", *files, "-m", "none", "--concurrency", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "--concurrency is of a server's model" in done.stderr
