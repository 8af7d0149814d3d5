"""The documents as tools of other programs: in memory, over stdio and over HTTP, as the SDK's own client asks."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import jsonschema
import pexpect
import psutil
import pytest
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from agent.chat.source import Asked
from agent.mcp.library import CallProgress, Library
from agent.mcp.tools import MAX_TEXT, DocumentServer
from agent.models.cancellation import CancellationToken
from indexes.documents.chunking import escape_name
from indexes.documents.isolation.process import ReadingProcess
from indexes.documents.watching import VectorMaker
from indexes.passage_index import PassageIndex
from tests import within
from tests.conftest import EXAMPLES, PATIENCE, ROOT, needs_embedder, needs_model
from tests.mcp_clients import JAM, NO_MODELS, RawServer, call, command, environment, on_port, read_text, talk

DOCUMENTS = EXAMPLES / "documents"
TOOLS = ["search_passages", "read_passage", "list_documents", "ask", "about_me"]
MODES = ("auto", "legacy")
SHADE = "Which plants grow well in pots on a shady balcony?"
JAM_PASSAGE = "recipes/plum-jam.txt:1-12"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person of whom nothing is known."""
    monkeypatch.setenv("CONVAGENT_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def open_library(source: Path, embedder: str = "none", model: str = "none", *, incognito: bool = False) -> Library:
    return Library(Asked(source, None, model, embedder, incognito))


@pytest.fixture(scope="module")
def server() -> Iterator[DocumentServer]:
    """The example documents, without models, for all tests that only read."""
    with closing(open_library(DOCUMENTS, incognito=True)) as opened:
        yield DocumentServer(opened)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def write_notes(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"note-{number:03}.txt").write_text(
            f"Note {number}\n\nThe alder number {number} stands in row {number}."
        )


def found_ids(result: Any) -> list[str]:
    assert not result.is_error, result.content
    return [found["passage"]["id"] for found in result.structured_content["passages"]]


def told(result: Any) -> str:
    """What a failed call says."""
    assert result.is_error
    return str(result.content[0].text)


# What is offered

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search_passages", {"query": JAM, "k": "3"}),
    ("read_passage", {"id": JAM_PASSAGE}),
    ("list_documents", {"only": "travel/"}),
    ("ask", {"question": JAM}),
    ("about_me", {}),
]


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_say_what_they_take_and_give(mode: str, server: DocumentServer) -> None:
    async def conversation(client: Client) -> list[Any]:
        results = [await client.call_tool(tool, arguments) for tool, arguments in CALLS]
        return [(await client.list_tools()).tools, results]

    tools, results = talk(conversation, server, mode=mode)
    assert [tool.name for tool in tools] == TOOLS
    for tool, result in zip(tools, results, strict=True):
        assert tool.annotations.read_only_hint
        assert "passage" in tool.description or "document" in tool.description or "person" in tool.description
        for schema in (tool.input_schema, tool.output_schema):
            assert schema["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(schema)
        assert not result.is_error
        jsonschema.validate(result.structured_content, tool.output_schema)
        assert json.loads(result.content[0].text) == result.structured_content


@needs_embedder
def test_an_answer_goes_on_with_its_conversation_and_names_its_sources(server: DocumentServer) -> None:
    """And what the person told is known, unless incognito."""

    async def conversation(client: Client) -> list[Any]:
        first = (await client.call_tool("ask", {"question": JAM})).structured_content
        id = first["conversation_id"]
        asked = {"question": "And how many jars do I get?", "conversation_id": id}
        second = (await client.call_tool("ask", asked)).structured_content
        kept = await client.call_tool("ask", {"question": "Only in travel", "conversation_id": id})
        third = await client.call_tool("ask", {"question": JAM, "conversation_id": id})
        text = await read_text(client, second["citations"][0]["uri"])
        return [first, second, text, kept.structured_content["only"], third.structured_content["citations"]]

    with closing(open_library(DOCUMENTS, "minilm")) as opened:
        first, second, text, only, elsewhere = talk(conversation, DocumentServer(opened))
        opened.store.add_statement("I am vegetarian.")
        assert call(DocumentServer(opened), "about_me").structured_content == {"statements": ["I am vegetarian."]}
    assert call(server, "about_me").structured_content == {"statements": []}
    assert "two years" in first["answer"]
    assert "jam" in second["searched_for"]
    assert "eleven small jars. [1]" in second["answer"]
    assert second["citations"][0]["id"] == JAM_PASSAGE
    assert second["citations"][0]["quotes"][0] in text
    assert only == "travel/"
    assert all(citation["id"].startswith("travel/") for citation in elsewhere)


def test_documents_are_resources_whatever_their_names(notes: Path) -> None:
    odd = {"sub/späte äpfel #1?.txt": "First", "sub/50% & more: a.txt": "Second", "sub/a  b.txt": "Third"}
    (notes / "sub").mkdir()
    for name, text in odd.items():
        (notes / name).write_text(text)
    long = "\n\n".join(f"Paragraph {number} is about the alder." for number in range(40_000))
    (notes / "long.txt").write_text(long)

    async def conversation(client: Client) -> dict[str, str]:
        assert len((await client.list_resource_templates()).resource_templates) == 2
        listed = (await client.list_resources()).resources
        return {resource.name: await read_text(client, resource.uri) for resource in listed}

    with closing(open_library(notes)) as opened:
        texts = talk(conversation, DocumentServer(opened))
    cut = texts.pop("long.txt")
    assert texts == {escape_name(name): text for name, text in odd.items()}
    assert len(cut) < MAX_TEXT + 100
    assert cut.endswith("[The rest is left out: search_passages finds it.]")


def test_an_index_is_ranked_as_by_the_command_line_and_read(example_index: PassageIndex) -> None:
    async def conversation(client: Client) -> list[Any]:
        found = await client.call_tool("search_passages", {"query": SHADE, "k": 20})
        uris = {resource.name: resource.uri for resource in (await client.list_resources()).resources}
        return [found_ids(found), await read_text(client, uris["garden-04"])]

    done = within.convagent("search", example_index.directory, SHADE, "-k", "20", "--json", "--embedder", "none")
    with closing(open_library(example_index.directory)) as opened:
        found, text = talk(conversation, DocumentServer(opened))
    assert found == [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert "Coral bells" in text


# Progress and cancelling


def note(told: list[Any]) -> ProgressFnT:
    """A client's report of progress: how far it is, and the message."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message or ""))

    return report


@needs_embedder
def test_until_vectors_are_made_a_search_is_by_words_or_waits_and_all_is_reported(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_notes(notes, 40)
    reading, answering, go_on, wait = list[Any](), list[Any](), threading.Event(), VectorMaker._wait_for_quiet
    monkeypatch.setattr(VectorMaker, "_wait_for_quiet", lambda *given: go_on.wait(PATIENCE) and wait(*given))

    async def open_gate(progress: float, total: float | None, message: str | None) -> None:
        if message and "of 40 passages" in message:
            go_on.set()

    async def conversation(client: Client) -> list[Any]:
        first = await client.call_tool("search_passages", {"query": "alder"}, progress_callback=note(reading))
        await client.call_tool("ask", {"question": "Where stands the alder?"}, progress_callback=note(answering))
        waiting = {"query": "alder", "wait": True}
        later = await client.call_tool("search_passages", waiting, progress_callback=open_gate)
        return [first.structured_content, later.structured_content]

    with closing(open_library(notes, "minilm")) as opened:
        first, later = talk(conversation, DocumentServer(opened))
    assert (first["searched_by"], later["searched_by"]) == ("words", "words and meaning")
    assert "by words" in first["note"]
    assert len(first["passages"]) == len(later["passages"]) == 10
    done = [progress for progress, _ in reading]
    assert done == sorted(set(done))
    assert done[-1] >= 80, "read, and indexed"
    assert any(message.startswith("searched for") for _, message in answering), answering


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_reads_no_further_document(mode: str, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notes(notes, 30)
    reached, cancelled, go_on, read = threading.Event(), threading.Event(), threading.Event(), list[Any]()
    parse_document, cancel = ReadingProcess.parse_document, CancellationToken.cancel

    def parse(*given: Any) -> Any:
        read.append(given)
        if len(read) == 5:
            reached.set()
            assert go_on.wait(PATIENCE)
        return parse_document(*given)

    def note_cancelling(token: CancellationToken) -> None:
        cancel(token)
        cancelled.set()

    monkeypatch.setattr(ReadingProcess, "parse_document", parse)
    monkeypatch.setattr(CancellationToken, "cancel", note_cancelling)

    async def conversation(client: Client) -> int:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "search_passages", {"query": "alder"})
            await anyio.to_thread.run_sync(reached.wait, PATIENCE)
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(cancelled.wait, PATIENCE)
        go_on.set()
        with CallProgress().take_turn(opened._documents, ""):
            before = len(read)
        result = await client.call_tool("search_passages", {"query": "alder", "k": 30})
        assert len(found_ids(result)) == 30
        return before

    with closing(open_library(notes)) as opened:
        assert talk(conversation, DocumentServer(opened), mode=mode) == 5
    assert len(read) == 30, "the next call goes on where the cancelled one stopped"


# Failures

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("search_passages", {}, "Field required"),
    ("search_passages", {"query": " "}, "the question is empty"),
    ("search_passages", {"query": "x" * 4001}, "at most 4000 characters"),
    ("search_passages", {"query": "jam", "k": 101}, "less than or equal to 100"),
    ("search_passages", {"query": "jam", "only": "nowhere/"}, "There are the folders bicycle/"),
    ("read_passage", {"id": "recipes/plum-jam.txt:99"}, "there is no passage 'recipes/plum-jam.txt:99'"),
    ("ask", {"question": JAM, "conversation_id": "x"}, "there is no conversation 'x'"),
    ("ask", {"question": ["jam"]}, "valid string"),
    ("list_documents", {"only": "*.xyz"}, "none of the documents is in '*.xyz'"),
    ("delete_everything", {}, "delete_everything"),
]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_wrong_with_a_call_is_told(mode: str, server: DocumentServer) -> None:
    async def conversation(client: Client) -> None:
        for tool, arguments, message in WRONG:
            assert message in told(await client.call_tool(tool, arguments))
        for uri in ("file:///etc/passwd", "convagent://documents/../../etc/passwd", "convagent://passages/nothing"):
            with pytest.raises(MCPError) as raised:
                await client.read_resource(uri)
            assert raised.value.error.code == -32602

    talk(conversation, server, mode=mode)


def test_a_panic_ends_its_call_only(server: DocumentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyO3 raises what is no `Exception` where Rust panics."""

    def panic(*_: Any) -> None:
        raise BaseException("index out of bounds")

    async def conversation(client: Client) -> list[Any]:
        with monkeypatch.context() as broken:
            broken.setattr(PassageIndex, "find", panic)
            failed = await client.call_tool("read_passage", {"id": JAM_PASSAGE})
        return [failed, await client.call_tool("read_passage", {"id": JAM_PASSAGE})]

    failed, worked = talk(conversation, server)
    assert "convagent failed (BaseException)" in told(failed)
    assert "index out of bounds" not in told(failed)
    assert not worked.is_error


def test_no_documents_and_no_model_are_told_where_they_are_needed(notes: Path) -> None:
    with closing(open_library(notes, model="nowhere.gguf")) as opened:
        assert "holds no document that can be read" in told(call(DocumentServer(opened), "search_passages", query="a"))
        write_notes(notes, 1)
        assert found_ids(call(DocumentServer(opened), "search_passages", query="alder"))
        assert "nowhere.gguf: no such model file" in told(call(DocumentServer(opened), "ask", question=JAM))
    with closing(open_library(notes, str(notes / "none.gguf"))) as opened:
        result = call(DocumentServer(opened), "search_passages", query="alder", wait=True)
    assert found_ids(result) == ["note-000.txt:1-3"]
    assert "no such model file" in result.structured_content["note"]


# Over stdio


@needs_model
@needs_embedder
@pytest.mark.model
def test_a_client_is_answered_with_the_bundled_models(data: Path) -> None:
    """Vectors included, and with nothing else on stdout: llama.cpp converts and loads both models here."""
    with RawServer(data, *command("--docs", DOCUMENTS)[1:]) as server:
        server.initialize()
        server.call(1, "ask", question=JAM)
        server.call(2, "search_passages", query=JAM, wait=True)
        answered, found = (server.read_reply(id)["result"]["structuredContent"] for id in (1, 2))
        assert server.end()[0] == 0
        server.check_output()
    assert JAM_PASSAGE in [citation["id"] for citation in answered["citations"]]
    assert (found["searched_by"], found["passages"][0]["passage"]["id"]) == ("words and meaning", JAM_PASSAGE)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_listing_the_tools_loads_neither_model_nor_index_and_a_signal_ends_it(
    sent: signal.Signals, code: int, data: Path
) -> None:
    with RawServer(data, *command("--docs", DOCUMENTS)[1:]) as server:
        server.initialize()
        server.send("tools/list", 1)
        assert [tool["name"] for tool in server.read_reply(1)["result"]["tools"]] == TOOLS
        loaded = " ".join(part.path for part in psutil.Process(server.process.pid).memory_maps())
        assert [name for name in ("llama", "ggml", "tantivy", "numpy", "spacy") if name in loaded] == []
        server.process.send_signal(sent)
        assert server.process.wait(PATIENCE) == code
        assert "Traceback" not in server.end()[1]


NOISE = """
import ctypes, os, subprocess, sys
from opentelemetry import trace
from agent.mcp.library import CallProgress, Library

class Tracer(trace.NoOpTracer):
    def start_as_current_span(self, name, *arguments, **more):
        print("SPAN", name, file=sys.stderr)
        return super().start_as_current_span(name, *arguments, **more)

class Provider(trace.NoOpTracerProvider):
    def get_tracer(self, *arguments, **more):
        return Tracer()

libc, open_documents = ctypes.CDLL(None), Library.open_documents

def make_noise(library, progress):
    print("noise of Python")
    os.write(1, b"noise of a descriptor")
    libc.puts(b"noise of C")
    libc.fflush(None)
    subprocess.run(["echo", "noise of another process"])
    return open_documents(library, progress)

trace.set_tracer_provider(Provider())
Library.open_documents = make_noise
from cli import app
app(["mcp", *sys.argv[1:]])
"""


def test_only_the_protocol_is_on_stdout_under_load_and_failure(
    data: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parallel calls, some wrong, cancelled or not JSON, over damaged documents, while all kinds of code print.

    No call is traced, although the environment is set up for that.
    """
    write_notes(notes, 20)
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7\nthis is none")
    (notes / "broken.docx").write_bytes(b"PK\x03\x04 this is none")
    monkeypatch.setenv("HOME", str(notes.parent))  # there is no shell that would know of it
    with RawServer(data, "-c", NOISE, "--docs", "~/notes", *NO_MODELS) as server:
        server.initialize()
        ids = range(1, 121, 6)
        for id in ids:
            server.call(id, "search_passages", query=f"alder {id}")
            server.call(id + 1, "ask", question=f"Where stands the alder number {id % 20}?")
            server.call(id + 2, "read_passage", id="nowhere")
            server.call(id + 3, "search_passages", k="many")
            server.send("resources/read", id + 4, uri="convagent://documents/nowhere")
            server.call(id + 5, "search_passages", query="alder", wait=True)
            server.send("notifications/cancelled", requestId=id + 5)
            server.send_raw(b"\xff{ this is no JSON\n")
        replies = {id + offset: server.read_reply(id + offset) for id in ids for offset in range(5)}
        code, error = server.end()
        assert code == 0, error
        assert "noise of C" in error
        assert "noise of another process" in error
        assert "SPAN" not in error
        server.check_output()
        assert all(not replies[id]["result"]["isError"] for id in ids)
        assert all("alder number" in replies[id + 1]["result"]["structuredContent"]["answer"] for id in ids)
        assert all(replies[id + 2]["result"]["isError"] and replies[id + 3]["result"]["isError"] for id in ids)
        assert all(replies[id + 4]["error"]["code"] == -32602 for id in ids)
        assert b"noise" not in server.output


UNSERVED: list[tuple[tuple[str, ...], int, str]] = [
    (("--docs", "nowhere"), 4, "nowhere: no such file or folder"),
    (("--index", "nowhere"), 4, "nowhere: no such index directory"),
    (("--index", "."), 4, ".: is no index"),
    ((), 2, "nothing to ask was named"),
    (("--docs", ".", "--index", "."), 2, "--docs and --index exclude each other"),
]


def test_what_cannot_be_served_is_told_at_once_on_stderr(data: Path, tmp_path: Path) -> None:
    for arguments, code, message in UNSERVED:
        done = within.convagent("mcp", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
    for closed in ("<&-", ">&-"):
        line = f"{sys.executable} {ROOT}/cli.py mcp --docs {DOCUMENTS} {closed}"
        ended = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert (ended.returncode, "stdin or stdout is closed" in ended.stderr) == (2, True), ended.stderr
    program = "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None; from cli import app; app()"
    with RawServer(data, "-c", program, "mcp", "--docs", str(DOCUMENTS)) as server:
        code, error = server.end()
        assert (code, server.output) == (4, b"")
        assert "pip install 'convagent[mcp]'" in error


def test_at_a_terminal_it_says_what_it_waits_for(data: Path) -> None:
    program, *arguments = command("--docs", DOCUMENTS)
    with pexpect.spawn(program, arguments, env=environment(data), timeout=PATIENCE) as terminal:
        terminal.expect("Waiting for a client on stdin")


# Over HTTP

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
REFUSED: list[tuple[str, dict[str, str], int]] = [
    ("POST", {"authorization": ""}, 401),
    ("POST", {"authorization": "Bearer wrong"}, 401),
    ("POST", {"authorization": "Basic TOKEN"}, 401),
    ("OPTIONS", {"authorization": ""}, 401),
    ("POST", {"host": "evil.example"}, 421),
    ("POST", {"origin": "http://evil.example"}, 403),
    ("POST", {"origin": "null"}, 403),
    ("POST", {"sec-fetch-site": "cross-site"}, 403),
]


def test_a_server_on_a_port_answers_who_has_the_token_which_stays(data: Path) -> None:
    reported, tokens = list[Any](), list[str]()
    with on_port(data, "--docs", DOCUMENTS, *NO_MODELS) as running:
        tokens.append(running.token)
        for mode in MODES:
            answered = talk(
                lambda client: client.call_tool("ask", {"question": JAM}, progress_callback=note(reported)),
                running.connect(),
                mode=mode,
            )
            assert "two years" in answered.structured_content["answer"]
        assert reported
        usual = {"authorization": f"Bearer {running.token}", "accept": "application/json, text/event-stream"}
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            for method, headers, status in REFUSED:
                given = {name: value.replace("TOKEN", running.token) for name, value in headers.items()}
                refused = client.request(method, running.url, json=PING, headers=usual | given)
                assert (method, headers, refused.status_code) == (method, headers, status)
                assert not [name for name in refused.headers if name.startswith("access-control")]
            assert client.post(running.url, content=b" " * 300_000, headers=usual).status_code == 413
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE) == 0
    for more in ((), ("--incognito",)):
        with on_port(data, "--docs", DOCUMENTS, *NO_MODELS, *more) as running:
            tokens.append(running.token)
    assert tokens[0] == tokens[1] != tokens[2]
    assert (data / "mcp-token").read_text().strip() == tokens[0]
    assert (data / "mcp-token").stat().st_mode & 0o077 == 0
