"""Several workers share one server: how many requests are under way, what a busy server does to that, what it all took.

The server is a stand-in whose replies depend on what it is asked and on nothing else, so that runs can be compared.
"""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from indexes.passage_index import PassageIndex
from tests import within
from tests.conftest import EXAMPLES, PATIENCE
from tests.stand_in import USAGE, StandIn, fault, said, standing_in


class SharedServer(StandIn):
    """Counts the requests that are under way. `misbehave` may give a reply of its own, or none."""

    lock = threading.Lock()
    crowded: threading.Event  # once `crowd` requests were under way at a time
    crowd: int
    under_way: int
    most_under_way: int
    misbehave: ClassVar[Callable[["SharedServer"], bool]]

    @classmethod
    def begin(cls, crowd: int, misbehave: Callable[["SharedServer"], bool]) -> None:
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
            if server.under_way >= server.crowd:
                server.crowded.set()
        server.crowded.wait(PATIENCE)
        with server.lock:  # before the reply, after which the client may send its next
            server.under_way -= 1
        if not server.misbehave(self):
            last = body["messages"][-1]["content"].split("\n\n")[0]
            text = json.dumps({"text": last}) if "response_format" in body else f"It is about {last.lower()}"
            self.send(200, said(text, usage=USAGE))

    def behave(self) -> bool:
        return False

    def drop_or_refuse_once(self) -> bool:
        if self.asked.count(self.asked[-1]) > 1:
            return False
        if len(self.asked) % 2:
            self.close_connection = True
        else:
            self.send(429, fault("too many requests"))
        return True

    def fail(self) -> bool:
        self.send(500, fault("out of memory"))
        return True


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("openai._base_client.BaseClient._calculate_retry_timeout", lambda *_: 0.0)
    with standing_in(SharedServer) as started:
        yield started


def test_a_shared_server_is_asked_as_much_as_it_should_be(
    address: str, example_index: PassageIndex, tmp_path: Path
) -> None:
    """Whatever is dropped or refused: a run has the same bytes, and counts what it took."""

    def answer(
        misbehave: Callable[[SharedServer], bool], most: int, *flags: str
    ) -> tuple[bytes, str, list[dict[str, Any]]]:
        """The run, what was said, and the calls of the server."""
        SharedServer.begin(most, misbehave)
        files = (EXAMPLES / "topics.json", "-i", example_index.directory, "-m", address, "-o", "run.json")
        plan = ["--overwrite", "--embedder", "none", "--answer", "extract", "--query", "context,hyde", "--no-cache"]
        done = within.convagent("answer", *files, *plan, *flags, cwd=tmp_path)
        assert (done.returncode, SharedServer.most_under_way) == (0, most), done.stderr
        lines = (tmp_path / "run.trace.jsonl").read_text().splitlines()[1:]
        calls = [call for line in lines for call in json.loads(line)["calls"] if call["requests"]]
        return (tmp_path / "run.json").read_bytes(), done.stderr, calls

    one, _, _ = answer(SharedServer.behave, 1)
    for most, flags in ((2, ["--jobs", "3", "--concurrency", "2"]), (3, ["--concurrency", "3"]), (2, ["--jobs", "2"])):
        assert answer(SharedServer.behave, most, *flags)[0] == one

    again, _, made = answer(SharedServer.drop_or_refuse_once, 1)
    calls, requests = len(made), len(StandIn.asked)
    assert (again == one, requests) == (True, 2 * calls)
    assert sum(call["requests"] for call in made) == requests
    assert {(call["tokens_read"], call["prefix_tokens"], call["tokens_written"]) for call in made} == {(10, 30, 7)}

    _, told, made = answer(SharedServer.fail, 1)
    assert "15 of them without the model" in told
    assert [(call["requests"], call["reply"], call["tokens_read"]) for call in made] == [(3, "", 0)] * 15
