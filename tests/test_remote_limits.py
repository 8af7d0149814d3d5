"""What a server may cost and may not learn us: its time, its size, and the key that it was sent and repeats."""

import gzip
import json
import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time
import traceback
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.models.cancellation import CancellationToken
from agent.models.protocol import Conversation, Task
from agent.models.remote.openai_client import open_server
from agent.models.remote.openai_server import ServerModel, open_server_model
from agent.models.remote.reply_limits import MAX_REPLY_BYTES, ReplyLimits
from indexes.passage_index import PassageIndex
from schemas.errors import ModelError, RunError
from schemas.records import Call, Message
from schemas.secrets import hide_keys, hide_secrets
from tests.conftest import EXAMPLES
from tests.stand_in import StandIn, fault, said, standing_in
from tests.test_remote import KEY, Question, convagent

TALK = Conversation("", (Message("user", "Which bread is free of gluten?"),))
ESCAPED = "".join(f"\\u{ord(character):04x}" for character in KEY)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CONVAGENT_API_KEY", KEY)
    monkeypatch.setattr(CancellationToken, "pause", lambda *_: None)  # before a further attempt
    with standing_in() as started:
        yield started


@pytest.fixture
def calls() -> list[Call]:
    return []


@pytest.fixture
def model(address: str, calls: list[Call]) -> Iterator[ServerModel]:
    with closing(open_server_model(address, calls.append)) as opened:
        yield opened


@pytest.mark.parametrize("in_header", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_that_trickles_in_has_an_end(
    streamed: bool, in_header: bool, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVAGENT_TIMEOUT", "0.5")
    StandIn.replies = [partial(StandIn.trickle, in_header=in_header)] * 3
    with (
        closing(open_server_model(address, print)) as model,
        pytest.raises(ModelError, match=r"no reply within 0.5 s\n.*CONVAGENT_TIMEOUT"),
    ):
        model.ask(TALK, Task("hyde"), str, (lambda _text: None) if streamed else None)
    assert len(StandIn.asked) == (3 if in_header else 1)  # one that began is not begun again


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[str]:
    """The address of a server that sends a byte of a header now and then, over TLS."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["-keyout", str(key), "-out", str(certificate), "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made], check=True, capture_output=True)
    context, ended = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), threading.Event()
    context.load_cert_chain(certificate, key)

    def trickle() -> None:
        with suppress(OSError), context.wrap_socket(listening.accept()[0], server_side=True) as connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            until = time.monotonic() + 60  # so that it ends where nobody ends it
            while not ended.wait(0.02) and time.monotonic() < until:
                connection.sendall(b"a")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=trickle)
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}/"
        ended.set()
        thread.join()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_an_encrypted_connection_ends_in_time_too(encrypted: str) -> None:
    limits = ReplyLimits(0.5)
    with httpx.Client(verify=False, trust_env=False, timeout=20, event_hooks={"request": [limits.begin]}) as client:  # noqa: S501
        began = time.monotonic()
        with pytest.raises(httpx.TransportError):
            client.get(encrypted)
    assert time.monotonic() - began < 20


def bomb(megabytes: int) -> bytes:
    """A packed reply that is a thousand times as large when it is unpacked."""
    packer, zeros = gzip.zlib.compressobj(9, wbits=31), b" " * (1 << 20)  # type: ignore[attr-defined]
    return b"".join([*(packer.compress(zeros) for _ in range(megabytes)), packer.flush()])


@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_that_unpacks_to_gigabytes_is_refused(streamed: bool, model: ServerModel) -> None:
    packed = bomb(400)
    StandIn.replies = [partial(StandIn.send_packed, data=packed)] * 3
    tracemalloc.start()
    with pytest.raises(ModelError, match="cannot be used: it has more than 16 MB"):
        model.ask(TALK, Task("hyde"), str, (lambda _text: None) if streamed else None)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * MAX_REPLY_BYTES


def test_a_packed_error_that_unpacks_to_gigabytes_is_refused(model: ServerModel, monkeypatch: Any) -> None:
    send_response = StandIn.send_response
    monkeypatch.setattr(StandIn, "send_response", lambda self, _status: send_response(self, 400))
    StandIn.replies = [partial(StandIn.send_packed, data=bomb(100))] * 6
    with pytest.raises(ModelError, match="more than 16 MB"):
        model.ask(TALK, Task("hyde"), str, lambda _text: None)


def test_a_reply_that_is_large_unpacked_is_refused(model: ServerModel) -> None:
    StandIn.replies = [(200, b" " * (MAX_REPLY_BYTES + 1))] * 3
    with pytest.raises(ModelError, match="cannot be used: it has more than 16 MB"):
        model.ask(TALK, Task("hyde"), str)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", gzip.zlib.compress)])  # type: ignore[attr-defined]
def test_a_packed_reply_is_read(encoding: str, pack: Any, model: ServerModel) -> None:
    data = json.dumps(said("Rice bread. " * 5000)).encode()
    StandIn.replies = [partial(StandIn.send_packed, data=pack(data), encoding=encoding)]
    assert model.ask(TALK, Task("hyde"), str) == ("Rice bread. " * 5000).strip()
    assert StandIn.headers_seen[0]["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(("encoding", "told"), [("br", "not asked for"), ("gzip", "cannot be unpacked")])
def test_a_badly_packed_reply_is_told(encoding: str, told: str, model: ServerModel) -> None:
    StandIn.replies = [partial(StandIn.send_packed, data=b"nonsense", encoding=encoding)] * 3
    with pytest.raises(ModelError, match=told):
        model.ask(TALK, Task("hyde"), str)


@pytest.mark.parametrize("key", [KEY, ESCAPED, KEY.replace("-", "%2D")])
@pytest.mark.parametrize("status", [400, 404, 500, 302])
def test_a_key_in_an_error_is_not_repeated(status: int, key: str, model: ServerModel) -> None:
    StandIn.replies = [(status, fault(f"who is {key}? see http://anna:pw@host/v1?api_key={key}"))] * 3
    with pytest.raises(RunError if status != 404 else Exception) as caught:
        model.ask(TALK, Task("hyde"), str)
    assert "who is [key]? see http://[key]@host/v1?api_key=[key]" in str(caught.value)
    assert key not in repr(caught.value.args)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_key_in_a_reply_is_not_repeated(streamed: bool, model: ServerModel, calls: list[Call]) -> None:
    """Not while it is written either, whose pieces end within the key."""
    shown: list[str] = []
    StandIn.write_parts = staticmethod(lambda _step: iter([f"Your key is {KEY}, isn't it?"]))
    assert model.ask(TALK, Task("hyde"), str, shown.append if streamed else None) == "Your key is [key], isn't it?"
    assert [call.reply for call in calls] == ["Your key is [key], isn't it?"]
    assert not any(KEY[:5] in text for text in shown)
    assert bool(shown) == streamed


def test_a_key_in_a_reply_of_a_type_is_not_repeated(model: ServerModel, calls: list[Call]) -> None:
    StandIn.replies = [(200, said(f'{{"text": "{ESCAPED}"}}'))]
    assert model.ask(TALK, Task("rewrite"), Question) == Question("[key]")
    assert KEY not in repr(calls)
    assert ESCAPED not in repr(calls)


def test_a_key_as_the_name_of_a_model_is_not_repeated(address: str) -> None:
    StandIn.models = (200, {"data": [{"id": KEY}]})
    with closing(open_server_model(address, print)) as model:
        assert model.name == f"{address}#[key]"


def test_a_key_reaches_neither_trace_nor_cache_nor_terminal(
    address: str, tmp_path: Path, example_index: PassageIndex
) -> None:
    """A server that quotes it in every error and every reply."""
    StandIn.replies = [(500, fault(f"no {KEY}"))] * 6
    StandIn.write_parts = staticmethod(lambda _step: iter([f'{{"text": "bread {KEY}"}}']))
    first_topic = tmp_path / "topics.json"
    first_topic.write_text(json.dumps(json.loads((EXAMPLES / "topics.json").read_text())[:1]))
    arguments: list[str | Path] = [
        "answer",
        first_topic,
        "-i",
        example_index.directory,
        "-m",
        address,
        "-o",
        "run.json",
    ]
    cache = tmp_path / "cache"
    done = convagent("-vv", *arguments, cwd=tmp_path, CONVAGENT_API_KEY=KEY, CONVAGENT_CACHE=str(cache))
    assert "no [key]" in done.stderr
    assert KEY not in done.stderr + done.stdout
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "run.trace.jsonl", "replies.sqlite"} <= {path.name for path in files}
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_traceback_repeats_no_key(address: str, tmp_path: Path, example_index: PassageIndex) -> None:
    StandIn.models = (400, fault(f"no {KEY}"))
    arguments: list[str | Path] = ["answer", EXAMPLES / "topics.json", "-i", example_index.directory, "-m", address]
    done = convagent("-vv", *arguments, cwd=tmp_path, CONVAGENT_API_KEY=KEY)
    assert "Traceback" in done.stderr
    assert (KEY in done.stderr, done.returncode) == (False, 4)


def test_doctor_repeats_no_key(tmp_path: Path) -> None:
    done = convagent("doctor", "-m", "none", "--json", cwd=tmp_path, CONVAGENT_API_KEY=KEY)
    assert KEY not in done.stdout + done.stderr
    shown = json.loads(done.stdout)["sections"]["Settings"]
    assert {"name": "CONVAGENT_API_KEY", "value": "[key]", "about": "environment"} in shown
    assert "CONVAGENT_API_KEY is no setting" not in done.stdout


@pytest.mark.parametrize(
    ("base", "warned"),
    [("http://model.example/v1", True), ("https://model.example/v1", False), ("http://127.0.0.1:1/v1", False)],
)
def test_a_key_that_goes_unencrypted_is_warned_of(
    base: str, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CONVAGENT_API_KEY", KEY)
    with caplog.at_level(logging.WARNING, "convagent"):
        open_server(base).close()
    assert ("goes to model.example unencrypted" in caplog.text) == warned
    monkeypatch.delenv("CONVAGENT_API_KEY")
    caplog.clear()
    open_server(base).close()
    assert not caplog.text


def test_what_the_hub_says_repeats_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from agent.models.hub import _explain

    monkeypatch.setenv("HF_TOKEN", KEY)
    error = _explain("hf:a/b", OSError(f"401 for {KEY} at https://anna:pw@hub/x?token=abc"))
    assert error.what == "hf:a/b cannot be had (401 for [key] at https://[key]@hub/x?token=[key])"
    assert KEY not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("key", ["", "none", "test"])
def test_a_word_that_is_no_key_stays(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVAGENT_API_KEY", key)
    text = "none of the test: a@b.org, http://host/a?monkey=1, mailto:a@b"
    assert hide_keys(text) == text
    assert hide_secrets("write to a@b.org") == "write to a@b.org"
