"""A server's model: a stand-in on loopback answers as such servers do, and fails in each of their ways.

One test asks the real server of llama-cpp-python.
"""

import asyncio
import gzip
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from msgspec import Meta, Struct

from agent.models.bundled import find_bundled_gguf, requantise
from agent.models.cancellation import AnswerCancelledError, CancellationToken, heed_token
from agent.models.openai_client import MAX_REPLY_BYTES, RAW_RESPONSE_HEADER, SENT_HEADERS, Connection
from agent.models.openai_server import ServerModel, open_server_model
from agent.models.protocol import Conversation, Task
from agent.models.registry import open_model
from indexes.passage_index import PassageIndex
from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, MissingError, ModelError, ModelReplyError, UsageError
from schemas.records import Call, Message
from tests import within
from tests.conftest import EXAMPLES, PATIENCE, needs_model
from tests.stand_in import GONE, LISTED, WORKING, StandIn, fault, name_step, said, standing_in

TALK = Conversation(
    "Be brief.",
    (Message("user", "I bake."), Message("assistant", "Nice!"), Message("user", "Which bread is free of gluten?")),
)
KEY = "sesame-5178"
ESCAPED = "".join(f"\\u{ord(character):04x}" for character in KEY)
HYDE = Task("hyde")


class Question(Struct):
    """What is asked for here."""

    text: Annotated[str, Meta(max_length=40)]


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CONVAGENT_API_KEY", KEY)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)  # before a further attempt
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.0)
    with standing_in() as started:
        yield started


@pytest.fixture
def calls() -> list[Call]:
    return []


@pytest.fixture
def model(address: str, calls: list[Call]) -> Iterator[ServerModel]:
    with closing(open_server_model(address, calls.append)) as opened:
        yield opened


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_reply_in_plain_text(model: ServerModel, calls: list[Call], address: str) -> None:
    """What is no part of an answer is left out of it, and half a character is sent as a whole one."""
    task = Task("hyde", "Which \ud83c?", "I say:", max_tokens=20, seed=7)
    assert model.ask(TALK, task, str) == "I say: Rice bread."
    (body,) = StandIn.asked
    system, *talk, last = body.pop("messages")
    assert system == {"role": "system", "content": "Be brief."}
    assert talk == [{"role": "user", "content": "I bake."}, {"role": "assistant", "content": "Nice!"}]
    assert last == {"role": "user", "content": "Which bread is free of gluten?\n\nWhich ??"}
    assert body == {"model": "big", "max_tokens": 20, "temperature": 0.8, "seed": 7}
    assert [headers["authorization"] for headers in StandIn.headers_seen] == [f"Bearer {KEY}"]
    (call,) = calls
    assert (call.step, call.reply, call.tokens_read, call.tokens_written) == ("hyde", "Rice bread.", 10, 7)
    assert call.prompt.endswith("user: Which bread is free of gluten?\n\nWhich ??")
    assert (model.name, len(model.digest), model.writes_answers) == (f"{address}#big", 64, True)
    scored = model.score(TALK, Task("statements"), ["My car is red.", "I cannot eat gluten."])
    assert scored == open_model("none").score(TALK, Task("statements"), ["My car is red.", "I cannot eat gluten."])
    for reply, text in (("<think>Rye?</think>\n\nRice.", "Rice."), ("<think>Hm, this never ends", ""), (None, "")):
        StandIn.replies = [(200, said(reply))]
        assert model.ask(TALK, HYDE, str) == text


@pytest.mark.parametrize(("status", "times"), [(400, 1), (500, 3)])
def test_a_reply_of_a_type_and_a_server_without_json_schema(status: int, times: int, model: ServerModel) -> None:
    """The 500 is that of llama-cpp-python's server; it looks like something that may pass, and is tried three times.

    A request that is too much is no reason for the older form.
    """
    StandIn.replies = [
        *[(400, fault("maximum context length is 64 tokens"))] * 2,
        (200, said('<think>Hm, {"text"?</think>{"text": "Which bread?"}')),
    ]
    with pytest.raises(ModelError, match="maximum context length is 64 tokens"):
        model.ask(TALK, Task("rewrite"), Question)
    assert model.ask(TALK, Task("rewrite"), Question) == Question("Which bread?")
    wanted = StandIn.asked[2]["response_format"]
    assert (wanted["type"], wanted["json_schema"]["strict"]) == ("json_schema", True)
    assert wanted["json_schema"]["schema"]["properties"]["text"] == {"type": "string", "maxLength": 40}
    assert "$ref" not in json.dumps(wanted)
    StandIn.asked.clear()
    StandIn.replies = [(status, fault("'loc': ('body', 'response_format', 'type')"))] * times
    StandIn.replies += [(200, said('{"text": "a"}')), (200, said('{"text": "b"}'))]
    assert [model.ask(TALK, Task("rewrite"), Question).text for _ in "ab"] == ["a", "b"]
    forms = [body["response_format"]["type"] for body in StandIn.asked]
    assert forms == ["json_schema"] * times + ["json_object"] * 2
    assert StandIn.asked[-1]["response_format"]["schema"]["properties"]["text"]["maxLength"] == 40


def test_what_may_pass_is_tried_three_times(model: ServerModel, address: str) -> None:
    for trouble in ((500, fault("boom")), (429, fault("slow down")), GONE):
        StandIn.replies, StandIn.asked[:] = [trouble] * 5, []
        with pytest.raises(ModelError) as caught:
            model.ask(TALK, HYDE, str)
        assert (caught.value.where, bool(caught.value.remedy), len(StandIn.asked)) == (address, True, 3)
        assert not isinstance(caught.value, ModelReplyError)
        assert model.ask(TALK, HYDE, str) == "Rice bread."
        assert len(StandIn.asked) == 6


def test_nothing_of_the_persons_settings_for_openai_is_sent(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a description of this machine."""
    monkeypatch.delenv("CONVAGENT_API_KEY")
    for name in ("API_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "theirs")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: theirs\nX-Theirs: theirs")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with closing(open_server_model(address, print)) as model:
        assert model.ask(TALK, HYDE, str) == "Rice bread."
    (headers,) = StandIn.headers_seen
    allowed = SENT_HEADERS | {RAW_RESPONSE_HEADER, "accept-encoding"}
    assert set(headers) <= allowed
    assert headers["accept-encoding"] == "identity"
    assert "theirs" not in str(headers)


ASKS_TO_WAIT = partial(StandIn.send, status=503, body=b"", headers={"Retry-After": "100"})
TRICKLES_IN_HEADER, TRICKLES = (partial(StandIn.trickle, in_header=in_header) for in_header in (True, False))


@pytest.mark.parametrize(
    ("trouble", "streamed"), [(WORKING, False), (TRICKLES_IN_HEADER, False), (TRICKLES, True), (ASKS_TO_WAIT, False)]
)
def test_what_is_no_longer_wanted_is_ended_at_once(trouble: Any, streamed: bool) -> None:
    """Whatever the server does, and the next answer, too."""
    with standing_in() as address, closing(open_server_model(address, print)) as model, ThreadPoolExecutor(1) as pool:
        StandIn.replies = [trouble] * 9

        def ask(token: CancellationToken) -> str:
            with heed_token(token):
                return model.ask(TALK, HYDE, str, (lambda _text: None) if streamed else None)

        for _ in range(2):
            token = CancellationToken()
            asked = pool.submit(ask, token)
            time.sleep(0.2)  # it waits by then, wherever it does
            cancelled_at = time.monotonic()
            token.cancel()
            assert isinstance(asked.exception(PATIENCE), AnswerCancelledError)
            assert time.monotonic() - cancelled_at < 20  # it takes a few hundredths of a second
        assert len(StandIn.asked) == 2


REDIRECTS = partial(StandIn.send, status=307, body=fault("bad"), headers={"Location": "/v2"})
PACKED = partial(StandIn.send_packed, data=gzip.compress(b" " * (1 << 20)))
UNUSABLE: list[tuple[Any, type[ConvagentError], str]] = [
    ((200, b"<html>Welcome!</html>"), ModelReplyError, "cannot be read"),
    ((200, {"choices": []}), ModelReplyError, "ends in the middle"),
    ((200, {"error": "none"}), ModelError, "the server failed (none)"),
    ((200, said('{"text": "Which', "length")), ModelReplyError, "was cut off after 128 tokens"),
    ((200, said('{"text": "Which')), ModelReplyError, "is of another form"),
    ((200, said(f'{{"text": "{"a" * 41}"}}')), ModelReplyError, "is of another form"),
    ((401, fault("no")), UsageError, "does not let us in (HTTP 401)"),
    ((403, fault("no")), UsageError, "CONVAGENT_API_KEY"),
    ((404, fault("bad\x1b \n bad")), MissingError, "no such model or path (HTTP 404: bad bad)"),
    (REDIRECTS, ModelError, "something else (HTTP 307: bad)"),  # which is not followed
    (PACKED, ModelError, "cannot be used: it is packed as 'gzip', which was not asked for"),
    ((200, b" " * (MAX_REPLY_BYTES + 1)), ModelError, "cannot be used: it has more than 16 MB"),
]


@pytest.mark.parametrize("streamed", [False, True])
def test_what_does_not_help_to_ask_again_is_told_at_once(streamed: bool, model: ServerModel) -> None:
    for reply, error, told in UNUSABLE:
        StandIn.replies, StandIn.asked[:] = [reply] * 3, []
        with pytest.raises(error) as caught:
            model.ask(TALK, Task("rewrite"), Question, (lambda _text: None) if streamed else None)
        assert told in str(caught.value)
        assert len(StandIn.asked) == 1, told


@pytest.mark.parametrize("in_header", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_that_trickles_in_has_an_end(
    streamed: bool, in_header: bool, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVAGENT_TIMEOUT", "0.5")
    StandIn.replies = [partial(StandIn.trickle, in_header=in_header)]
    with (
        closing(open_server_model(address, print)) as model,
        pytest.raises(ModelError, match=r"no reply within 0.5 s\n.*CONVAGENT_TIMEOUT"),
    ):
        model.ask(TALK, HYDE, str, (lambda _text: None) if streamed else None)


UNOPENED: list[tuple[str, tuple[int, Any], type[ConvagentError], str]] = [
    ("#huge", (200, LISTED), MissingError, "no model 'huge'\n  It has: big, small"),
    ("", (200, {"data": []}), MissingError, "cannot be read"),
    ("", (200, {"data": [{"id": "big", "meta": {"n_ctx_train": "many"}}]}), MissingError, "cannot be read"),
    ("", (404, b""), MissingError, "up to /v1"),
    ("", (503, fault("loading")), MissingError, "HTTP 503: loading"),
    ("", (401, fault(f"no {KEY}")), UsageError, "Set CONVAGENT_API_KEY"),
]
SETTINGS = [("TIMEOUT", "soon"), ("TIMEOUT", "0"), ("TIMEOUT", "nan"), ("API_KEY", "a\nb"), ("API_KEY", "clé")]


def test_a_server_that_cannot_be_used_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, models, error, told in UNOPENED:
        StandIn.models = models
        with pytest.raises(error) as caught:
            open_server_model(address + name, print)
        assert told in str(caught.value)
        assert KEY not in str(caught.value)
    for host in (f"127.0.0.1:{free_port()}", "a..b", f"{'a' * 70}.invalid"):
        with pytest.raises(MissingError, match="cannot be reached") as unreached:
            open_server_model(f"http://{host}/v1#big", print)
        assert "Is the server running" in unreached.value.remedy
    for setting, value in SETTINGS:
        with monkeypatch.context() as patch:
            patch.setenv(f"CONVAGENT_{setting}", value)
            with pytest.raises(UsageError, match=setting):
                open_server_model(address, print)


def test_a_password_in_an_address_is_not_repeated() -> None:
    for rest in ("anna:sesame@127.0.0.1:1/v1#big", "127.0.0.1:1/v1?key=sesame#big", "anna:sesame@host:port", "#sesame"):
        with pytest.raises(UsageError) as caught:
            open_model(f"http://{rest}")
        assert "sesame" not in f"{caught.value} {caught.value.__cause__}"


def test_proxies_of_the_environment(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is asked past them; where one cannot be used, that is said without its password."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", "gopher://anna:sesame@127.0.0.1:1")
    open_server_model(address, print).close()
    with pytest.raises(UsageError, match="proxy") as caught:
        open_server_model("http://192.0.2.1/v1", print)
    assert "sesame" not in str(caught.value)


def test_the_oldest_exchanges_give_way(address: str, calls: list[Call]) -> None:
    """The model `small` reads 64 tokens: the conversation is 35 long, without its first exchange 21."""
    with closing(open_server_model(f"{address}#small", calls.append)) as model:
        model.ask(TALK, Task("hyde", max_tokens=40), str)
        assert [message["role"] for message in StandIn.asked[0]["messages"]] == ["system", "user"]
        assert calls[0].omitted == ("exchange 1",)
        with pytest.raises(ModelError, match="step 'hyde' takes 21 tokens, and 4 are left beside its reply"):
            model.ask(TALK, Task("hyde", max_tokens=60), str)


def test_a_run(address: str, tmp_path: Path, example_index: PassageIndex) -> None:
    """The whole example; the key is nowhere, and a written sentence that no passage supports gives way."""
    topics, index = str(EXAMPLES / "topics.json"), str(example_index.directory)
    arguments = ("answer", topics, "-i", index, "-m", f"{address}#big", "--embedder", "none", "-o", "run.json")
    result = within.convagent(*arguments, "--query", "context,hyde,rewrite", cwd=tmp_path, CONVAGENT_API_KEY=KEY)
    assert result.returncode == 0, result.stderr
    assert within.convagent("validate", "run.json", "-t", topics, cwd=tmp_path).stdout == "run.json: valid (15 turns)\n"
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert "lemonade" not in written["run.json"]
    assert "lemonade" in written["run.trace.jsonl"]
    assert f'"model":"{address}#big"' in written["run.trace.jsonl"]
    assert KEY not in "".join(written.values())
    assert set(map(name_step, StandIn.asked)) == {"", "rewrite", "write"}


@pytest.mark.parametrize("end", [GONE, WORKING, (500, fault("out of memory"))])
def test_a_run_whose_server_ends_half_way(end: Any, address: str, tmp_path: Path, example_index: PassageIndex) -> None:
    """Its turns are answered without it from then on, which is told; once it is back, they are asked again."""
    (topic, *_) = json.loads((EXAMPLES / "topics.json").read_text())
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps([topic | {"turns": topic["turns"][:2]}]))
    arguments = ("answer", topics, "-i", example_index.directory, "--embedder", "none", "-o", "run.json", "--no-cache")
    asked = (*arguments, "-m", f"{address}#big", "--answer", "extract")
    assert within.convagent(*asked, cwd=tmp_path).returncode == 0
    whole = (tmp_path / "run.json").read_bytes()
    StandIn.replies = [end] * 50
    result = within.convagent(*asked, "--overwrite", cwd=tmp_path, CONVAGENT_TIMEOUT="0.3")
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line)["answered"] for line in (tmp_path / "run.trace.jsonl").read_text().splitlines()[1:]]
    failed = [line["turn_id"] for line in lines if line["without_model"]]
    assert failed
    assert f"{len(failed)} of them without the model, which failed (turn {failed[0]}" in result.stderr
    assert within.convagent("validate", "run.json", "-t", topics, cwd=tmp_path).returncode == 0
    StandIn.replies = []
    again = within.convagent(*asked, "--resume", cwd=tmp_path)
    assert "without the model" not in again.stderr
    assert f"2 turns answered ({2 - len(failed)} of them from the trace)" in again.stderr
    assert (tmp_path / "run.json").read_bytes() == whole


@pytest.fixture
def real_server(tmp_path: Path) -> Iterator[str]:
    """The bundled model behind llama-cpp-python's own server."""
    port, source = free_port(), find_bundled_gguf()
    gguf = requantise(source, hash_file(source))
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(gguf), "--model_alias", "smollm2"]
    with (tmp_path / "server.log").open("w") as log:
        command += ["--port", str(port), "--n_ctx", "4096"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log) as process:
            try:
                _wait_for(f"http://127.0.0.1:{port}/v1/models", process)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                process.kill()


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        with suppress(httpx.ConnectError):
            httpx.get(url, trust_env=False)
            return
        time.sleep(0.1)


@needs_model
@pytest.mark.skipif(find_spec("fastapi") is None, reason="llama-cpp-python[server] is not installed (extra dev)")
def test_a_real_server(real_server: str) -> None:
    calls: list[Call] = []
    with closing(open_server_model(real_server, calls.append)) as model:
        assert model.name == f"{real_server}#smollm2"
        shown: list[str] = []
        text = model.ask(TALK, Task("hyde", max_tokens=8), str, shown.append)
        assert text == shown[-1].strip() != ""
        assert model.ask(TALK, Task("rewrite", max_tokens=64), Question).text
    assert min(calls[-1].tokens_read, calls[-1].tokens_written) > 0


def test_a_key_in_an_error_is_not_repeated(model: ServerModel) -> None:
    for key in (KEY, ESCAPED, KEY.replace("-", "%2D")):
        StandIn.replies = [(404, fault(f"who is {key}? see http://anna:pw@host/v1?api_key={key}"))]
        with pytest.raises(MissingError) as caught:
            model.ask(TALK, HYDE, str)
        assert "who is [key]? see http://[key]@host/v1?api_key=[key]" in str(caught.value)
        assert key not in repr(caught.value.args)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_key_in_a_reply_is_not_repeated(streamed: bool, model: ServerModel, calls: list[Call]) -> None:
    """Not while it is written either, whose pieces end within the key."""
    shown: list[str] = []
    StandIn.write_parts = staticmethod(lambda _step: iter([f"Your key is {KEY}, isn't it?"]))
    assert model.ask(TALK, HYDE, str, shown.append if streamed else None) == "Your key is [key], isn't it?"
    assert [call.reply for call in calls] == ["Your key is [key], isn't it?"]
    assert not any(KEY[:5] in text for text in shown)
    assert bool(shown) == streamed


def test_a_key_is_no_value_of_a_reply_and_no_name_of_a_model(address: str, calls: list[Call]) -> None:
    StandIn.models = (200, {"data": [{"id": KEY}]})
    StandIn.replies = [(200, said(f'{{"text": "{ESCAPED}"}}'))]
    with closing(open_server_model(address, calls.append)) as model:
        assert model.name == f"{address}#[key]"
        assert model.ask(TALK, Task("rewrite"), Question) == Question("[key]")
    assert not [secret for secret in (KEY, ESCAPED) if secret in repr(calls)]


def test_a_key_reaches_neither_trace_nor_cache_nor_terminal(
    address: str, tmp_path: Path, example_index: PassageIndex
) -> None:
    """A server that quotes it in every error and every reply; and a traceback, where it cannot be opened."""
    StandIn.replies = [(500, fault(f"no {KEY}"))] * 6
    StandIn.write_parts = staticmethod(lambda _step: iter([f'{{"text": "bread {KEY}"}}']))
    first_topic = tmp_path / "topics.json"
    first_topic.write_text(json.dumps(json.loads((EXAMPLES / "topics.json").read_text())[:1]))
    files = (first_topic, "-i", example_index.directory, "-m", address, "-o", "run.json", "--embedder", "none")
    cache = {"CONVAGENT_CACHE": str(tmp_path / "cache")}
    done = within.convagent("-vv", "answer", *files, cwd=tmp_path, CONVAGENT_API_KEY=KEY, **cache)
    assert "no [key]" in done.stderr
    assert KEY not in done.stderr + done.stdout
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"run.json", "run.trace.jsonl", "replies.sqlite"} <= {path.name for path in written}
    assert [path.name for path in written if KEY.encode() in path.read_bytes()] == []
    StandIn.models = (400, fault(f"no {KEY}"))
    done = within.convagent("-vv", "answer", *files, "--overwrite", cwd=tmp_path, CONVAGENT_API_KEY=KEY)
    assert ("Traceback" in done.stderr, KEY in done.stderr, done.returncode) == (True, False, 4)


UNENCRYPTED = "http://model.example/v1"
KEYS = [(UNENCRYPTED, KEY), ("https://model.example/v1", KEY), ("http://127.0.0.1:1/v1", KEY), (UNENCRYPTED, "")]


@pytest.mark.parametrize(("base", "key"), KEYS)
def test_a_key_that_goes_unencrypted_is_warned_of(
    base: str, key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CONVAGENT_API_KEY", key)
    Connection(base, asyncio.Semaphore(1)).close()
    assert ("goes to model.example unencrypted" in caplog.text) == ((base, key) == (UNENCRYPTED, KEY))
