"""The documents as tools of other programs: in memory, over stdio and over HTTP, as the SDK's own client asks."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import jsonschema
import msgspec
import pexpect
import psutil
import pytest
import uvicorn
from mcp import Client
from mcp.shared.exceptions import MCPError

from agent.mcp.calls import CallProgress
from agent.mcp.http import HOST, PATH, configure_uvicorn, make_app
from agent.mcp.library import Library, LibraryRequest
from agent.mcp.records import to_document_uri
from agent.mcp.server import MAX_TEXT, PAGE, PROMPT, make_server
from agent.mcp.tools import MAX_CONVERSATIONS, MAX_TURNS, Conversations
from agent.models.cancellation import CancellationToken
from agent.serve.listening import open_socket, to_url
from agent.terminal.progress import stage_progress
from indexes.documents.background_vectors import VectorMaker
from indexes.documents.document_index import open_documents
from indexes.documents.isolation.process import ReadingProcess
from indexes.documents.passage_ids import escape_name
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import HybridRetriever
from indexes.storage.directories import find_cache_directory
from schemas.errors import MissingError
from schemas.records import Query, Response, TurnResult
from tests.conftest import EXAMPLES, PATIENCE, ROOT, needs_embedder, needs_model
from tests.mcp_clients import (
    JAM,
    NO_MODELS,
    RawServer,
    Reports,
    call,
    command,
    connect,
    environment,
    on_port,
    on_stdio,
    read_text,
    talk,
)
from tests.processes import run

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


def open_library(source: Path, embedder: str = "none", model: str = "none", **more: bool) -> Library:
    return Library(LibraryRequest(source, model, embedder, **more))


@pytest.fixture
def library() -> Iterator[Library]:
    """The example documents, without models."""
    with closing(open_library(DOCUMENTS)) as opened:
        yield opened


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


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_say_what_they_take_and_give(mode: str, library: Library) -> None:
    tools = talk(lambda client: client.list_tools(), make_server(library), mode=mode).tools
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        assert tool.annotations
        assert tool.annotations.read_only_hint
        for schema in (tool.input_schema, tool.output_schema):
            assert schema
            assert schema["type"] == "object"
            jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_passages", {"query": JAM, "k": 3}),
        ("search_passages", {"query": JAM, "k": "3"}),
        ("read_passage", {"id": JAM_PASSAGE}),
        ("list_documents", {"only": "travel/"}),
        ("ask", {"question": JAM}),
        ("about_me", {}),
    ],
)
def test_what_a_tool_gives_fits_its_schema(tool: str, arguments: dict[str, Any], mode: str, library: Library) -> None:
    async def conversation(client: Client) -> tuple[Any, Any]:
        tools = {listed.name: listed for listed in (await client.list_tools()).tools}
        return tools[tool].output_schema, await client.call_tool(tool, arguments)

    schema, result = talk(conversation, make_server(library), mode=mode)
    assert not result.is_error
    jsonschema.validate(result.structured_content, schema)
    assert result.content[0].text


def test_an_answer_goes_on_with_its_conversation_and_links_its_sources(library: Library) -> None:
    async def conversation(client: Client) -> tuple[Any, Any, str]:
        first = await client.call_tool("ask", {"question": JAM})
        id = first.structured_content["conversation_id"]
        second = await client.call_tool("ask", {"question": "And how many jars do I get?", "conversation_id": id})
        (link,) = [block for block in second.content if block.type == "resource_link"]
        return first, second, await read_text(client, link.uri)

    first, second, text = talk(conversation, make_server(library))
    assert "two years" in first.structured_content["answer"]
    assert "jam" in second.structured_content["searched_for"]
    assert "eleven small jars. [1]" in second.structured_content["answer"]
    (citation,) = second.structured_content["citations"]
    assert citation["id"] == JAM_PASSAGE
    assert citation["quotes"][0] in text


def test_a_conversation_keeps_to_the_part_that_was_asked_for(library: Library) -> None:
    async def conversation(client: Client) -> list[Any]:
        kept = await client.call_tool("ask", {"question": "Only in travel"})
        id = kept.structured_content["conversation_id"]
        asked = await client.call_tool("ask", {"question": JAM, "conversation_id": id})
        return [kept.structured_content["only"], asked.structured_content["citations"]]

    only, citations = talk(conversation, make_server(library))
    assert only == "travel/"
    assert all(citation["id"].startswith("travel/") for citation in citations)


def test_what_the_person_told_is_known_unless_incognito(library: Library) -> None:
    library.open_store().add_statement("I am vegetarian.")
    assert call(make_server(library), "about_me").structured_content == {"statements": ["I am vegetarian."]}
    with closing(open_library(DOCUMENTS, incognito=True)) as other:
        assert call(make_server(other), "about_me").structured_content == {"statements": []}


def test_conversations_are_forgotten_when_there_are_too_many() -> None:
    from agent.chat.store import ChatTurn

    turn = ChatTurn("?", TurnResult("1", Query("?"), (), (), (), (Response(()),)))
    kept = Conversations()
    first, second = kept.add_turn("", turn), kept.add_turn("", turn)
    for _ in range(MAX_TURNS + 5):
        kept.add_turn(first, turn)
    assert len(kept.read_turns(first)) == MAX_TURNS
    for _ in range(MAX_CONVERSATIONS - 1):
        kept.add_turn("", turn)
    assert kept.read_turns(first)
    with pytest.raises(MissingError, match="there is no conversation"):
        kept.read_turns(second)


def test_the_prompt_holds_the_question(library: Library) -> None:
    async def conversation(client: Client) -> tuple[Any, Any]:
        return await client.list_prompts(), await client.get_prompt(PROMPT, {"question": "{{ 7 * 7 }}?"})

    listed, got = talk(conversation, make_server(library))
    assert [prompt.name for prompt in listed.prompts] == [PROMPT]
    assert "Question: {{ 7 * 7 }}?" in got.messages[0].content.text


def test_documents_are_resources_page_by_page_whatever_their_names(notes: Path) -> None:
    write_notes(notes, PAGE)
    odd = {"späte äpfel #1?.txt": "First", "50% & more: a.txt": "Second", "a  b.txt": "Third"}
    (notes / "sub").mkdir()
    for name, text in odd.items():
        (notes / "sub" / name).write_text(text)

    async def conversation(client: Client) -> dict[str, str]:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        assert (len(first.resources), second.next_cursor) == (PAGE, None)
        assert (await client.list_resource_templates()).resource_templates
        rest = [resource.uri for resource in second.resources]
        return {uri: await read_text(client, uri) for uri in rest}

    with closing(open_library(notes)) as opened:
        texts = talk(conversation, make_server(opened))
    assert texts == {to_document_uri(escape_name(f"sub/{name}")): text for name, text in odd.items()}


def test_the_documents_of_an_index_can_be_read(example_index: PassageIndex) -> None:
    async def conversation(client: Client) -> str:
        listed = (await client.list_resources()).resources
        return await read_text(client, next(resource.uri for resource in listed if resource.name == "garden-04"))

    with closing(open_library(example_index.directory)) as opened:
        text = talk(conversation, make_server(opened))
    assert "Coral bells" in text


def test_a_document_is_cut_where_it_is_very_long(notes: Path) -> None:
    (notes / "long.txt").write_text("\n\n".join(f"Paragraph {number} is about the alder." for number in range(40_000)))

    async def conversation(client: Client) -> str:
        return await read_text(client, "convagent://documents/long.txt")

    with closing(open_library(notes)) as opened:
        text = talk(conversation, make_server(opened))
    assert len(text) < MAX_TEXT + 100
    assert text.endswith("[The rest is left out: search_passages finds it.]")


# The same ranking as the command line


def search_on_command_line(index: Path, question: str, embedder: str) -> list[tuple[str, float]]:
    done = run("search", index, question, "-k", "20", "--json", "--embedder", embedder)
    assert done.returncode == 0, done.stderr
    return [(hit["id"], hit["score"]) for hit in map(json.loads, done.stdout.splitlines())]


def search_by_client(source: Path, question: str, embedder: str) -> tuple[str, list[tuple[str, float]]]:
    with closing(open_library(source, embedder)) as opened:
        result = call(make_server(opened), "search_passages", query=question, k=20, wait=True).structured_content
    return result["searched_by"], [(found["passage"]["id"], found["score"]) for found in result["passages"]]


def test_an_index_is_ranked_as_by_the_command_line(example_index: PassageIndex) -> None:
    by, ranking = search_by_client(example_index.directory, SHADE, "none")
    assert by == "words"
    assert ranking == search_on_command_line(example_index.directory, SHADE, "none")


@needs_embedder
def test_an_index_is_ranked_by_meaning_as_by_the_command_line(example_index: PassageIndex) -> None:
    by, ranking = search_by_client(example_index.directory, SHADE, "minilm")
    assert by == "words and meaning"
    assert ranking == search_on_command_line(example_index.directory, SHADE, "minilm")


@needs_embedder
def test_documents_are_ranked_by_meaning_as_by_the_command_line() -> None:
    folder = DOCUMENTS / "recipes"
    by, ranking = search_by_client(folder, JAM, "minilm")
    index = open_documents(folder, find_cache_directory(), None, stage_progress).index
    assert by == "words and meaning"
    assert ranking == search_on_command_line(index.directory, JAM, "minilm")


def test_a_search_keeps_to_a_part_of_the_documents(library: Library) -> None:
    server = make_server(library)
    everywhere = found_ids(call(server, "search_passages", query="the weekend", k=50))
    in_travel = found_ids(call(server, "search_passages", query="the weekend", k=50, only="travel/"))
    assert in_travel
    assert in_travel == [id for id in everywhere if id.startswith("travel/")]
    assert "There are the folders bicycle/" in told(call(server, "search_passages", query="the weekend", only="trvel/"))


@needs_embedder
def test_until_the_models_are_there_a_search_is_answered_by_words(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent.models.embedding import registry

    write_notes(notes, 3)
    arrived, open_now = threading.Event(), registry.open_embedder
    monkeypatch.setattr(registry, "open_embedder", lambda name: arrived.wait(PATIENCE) and open_now(name))

    async def conversation(client: Client) -> list[Any]:
        first = await client.call_tool("search_passages", {"query": "alder"})
        arrived.set()
        later = await client.call_tool("search_passages", {"query": "alder", "wait": True})
        return [first.structured_content, later.structured_content]

    with closing(open_library(notes, "minilm")) as opened:
        first, later = talk(conversation, make_server(opened))
    assert (first["searched_by"], later["searched_by"]) == ("words", "words and meaning")
    assert "is being loaded" in first["note"]
    assert len(first["passages"]) == len(later["passages"]) == 3


def test_an_embedding_model_that_is_not_there_is_told_and_words_remain(notes: Path) -> None:
    write_notes(notes, 1)
    with closing(open_library(notes, str(notes / "none.gguf"))) as opened:
        result = call(make_server(opened), "search_passages", query="alder", wait=True)
    assert found_ids(result) == ["note-000.txt:1-3"]
    assert "no such model file" in result.structured_content["note"]


def test_where_documents_are_many_the_first_search_does_not_wait_for_all(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent.chat import opening as sources

    write_notes(notes, 120)
    monkeypatch.setattr(sources, "READING_SECONDS", 0.0)
    gate = hold_reading(monkeypatch, after=100)  # what has to be read at once is read by then

    async def conversation(client: Client) -> list[Any]:
        first = await client.call_tool("search_passages", {"query": "alder", "k": 100})
        asked = await client.call_tool("ask", {"question": "Where stands the alder?"})
        gate.open.set()
        listed = await client.call_tool("list_documents", {})
        later = await client.call_tool("search_passages", {"query": "alder", "k": 100})
        return [result.structured_content for result in (first, asked, listed, later)]

    with closing(open_library(notes)) as opened:
        first, asked, listed, later = talk(conversation, make_server(opened))
    assert len(first["passages"]) < len(later["passages"]) == 100
    assert "Not all documents are known yet." in first["note"]
    assert "Not all documents are known yet." in asked["note"]
    assert "Not all documents" not in later["note"]
    assert listed["total"] == 120


def test_changed_documents_are_found(notes: Path) -> None:
    write_notes(notes, 1)

    async def conversation(client: Client) -> None:
        await client.call_tool("search_passages", {"query": "walnut"})
        (notes / "new.txt").write_text("The walnut stands by the gate.")
        while True:
            result = await client.call_tool("search_passages", {"query": "walnut"})
            if found_ids(result):
                return
            await anyio.sleep(0.1)

    with closing(open_library(notes)) as opened:
        talk(conversation, make_server(opened))


# Progress and cancelling


def listen(reports: Reports, tool: str, **arguments: Any) -> Callable[[Client], Any]:
    """A conversation of one call whose progress is reported."""
    return lambda client: client.call_tool(tool, arguments, progress_callback=reports)


def test_reading_documents_reports_its_progress(notes: Path) -> None:
    write_notes(notes, 40)
    reports = Reports()
    with closing(open_library(notes)) as opened:
        talk(listen(reports, "search_passages", query="alder"), make_server(opened))
    assert reports.told[-1][:2] == (80, 80), "read, and indexed"
    done = [done for done, _, _ in reports.told]
    assert done == sorted(set(done))


def test_an_answer_reports_its_steps(library: Library) -> None:
    reports = Reports()
    talk(listen(reports, "ask", question=JAM), make_server(library))
    assert any(message.startswith("searched for") for message in reports.messages), reports


class Gate:
    """Holds whoever comes to it up, from the `after`-th time on, until it is opened."""

    def __init__(self, work: Callable[..., Any], after: int = 1) -> None:
        self.work, self.after, self.times = work, after, 0
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.times += 1
        if self.times >= self.after:
            self.reached.set()
            assert self.open.wait(PATIENCE)
        return self.work(*arguments, **more)

    async def wait(self) -> None:
        await anyio.to_thread.run_sync(self.reached.wait, PATIENCE)


@needs_embedder
def test_making_vectors_reports_its_progress(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notes(notes, 20)
    gate = Gate(VectorMaker._wait_for_quiet)
    monkeypatch.setattr(VectorMaker, "_wait_for_quiet", lambda *arguments: gate(*arguments))

    async def open_gate(progress: float, total: float | None, message: str | None) -> None:
        if message and "of 20 passages" in message:
            gate.open.set()

    async def conversation(client: Client) -> Any:
        return await client.call_tool("search_passages", {"query": "alder", "wait": True}, progress_callback=open_gate)

    with closing(open_library(notes, "minilm")) as opened:
        assert found_ids(talk(conversation, make_server(opened)))


def hold_reading(monkeypatch: pytest.MonkeyPatch, after: int) -> Gate:
    """A gate before the reading of a document."""
    gate = Gate(ReadingProcess.parse_document, after)
    monkeypatch.setattr(ReadingProcess, "parse_document", lambda *arguments: gate(*arguments))
    return gate


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once the server knows that a call was cancelled."""
    known, cancel = threading.Event(), CancellationToken.cancel

    def note(token: CancellationToken) -> None:
        cancel(token)
        known.set()

    monkeypatch.setattr(CancellationToken, "cancel", note)
    return known


async def cancel_when_reached(
    client: Client, gate: Gate, cancelled: threading.Event, tool: str, **arguments: Any
) -> None:
    """Call a tool, cancel the call once it is at the gate, and open the gate when the server knows."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.call_tool(tool, arguments))
        await gate.wait()
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(cancelled.wait, PATIENCE)
    gate.open.set()


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_reads_no_further_document(
    mode: str, notes: Path, cancelled: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_notes(notes, 30)
    gate = hold_reading(monkeypatch, after=5)

    async def conversation(client: Client) -> int:
        await cancel_when_reached(client, gate, cancelled, "search_passages", query="alder")
        with CallProgress().take_turn(opened._documents, ""):
            read = gate.times
        result = await client.call_tool("search_passages", {"query": "alder", "k": 30})
        assert len(found_ids(result)) == 30
        return read

    with closing(open_library(notes)) as opened:
        assert talk(conversation, make_server(opened), mode=mode) == 5
    assert gate.times == 30, "the next call goes on where the cancelled one stopped"


@pytest.mark.parametrize("way", ["in memory", "over HTTP"])
@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_question_is_not_answered(
    mode: str, way: str, library: Library, cancelled: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent.turn import answer_writing

    find, steps = Gate(HybridRetriever.find), list[str]()
    monkeypatch.setattr(HybridRetriever, "find", lambda *arguments, **more: find(*arguments, **more))
    generate = answer_writing.is_writer

    def note(*given: Any) -> bool:
        steps.append("answer")
        return generate(*given)

    monkeypatch.setattr(answer_writing, "is_writer", note)

    async def conversation(client: Client) -> Any:
        await cancel_when_reached(client, find, cancelled, "ask", question=JAM)
        assistant = library.open_assistant(CallProgress())
        with assistant.lock:  # the cancelled question has let go of it
            answered = list(steps)
        return answered, await client.call_tool("ask", {"question": JAM})

    server = make_server(library)
    answered, result = talk(conversation, server if way == "in memory" else connect_in_process(server), mode=mode)
    assert answered == []
    assert "two years" in result.structured_content["answer"]


@asynccontextmanager
async def connect_in_process(server: Any) -> AsyncIterator[Any]:
    """A transport over HTTP to a server that listens in this process."""
    runner = uvicorn.Server(configure_uvicorn(make_app(server, "token")))
    with open_socket(HOST, 0) as listening:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.serve, [listening])
            async with connect(f"{to_url(HOST, listening).rstrip('/')}{PATH}", "Bearer token") as streams:
                yield streams
            runner.should_exit = True


# Failures


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("search_passages", {}, "missing required field `query`"),
        ("search_passages", {"query": " "}, "the question is empty"),
        ("search_passages", {"query": "x" * 4001}, "<= 4000 - at `$.query`"),
        ("search_passages", {"query": "jam", "k": 0}, ">= 1 - at `$.k`"),
        ("search_passages", {"query": "jam", "k": 101}, "<= 100 - at `$.k`"),
        ("search_passages", {"query": "jam", "depth": 3}, "unknown field `depth`"),
        ("search_passages", {"query": "jam", "only": "nowhere/"}, "none of the documents is in 'nowhere/'"),
        ("read_passage", {"id": "recipes/plum-jam.txt:99"}, "there is no passage 'recipes/plum-jam.txt:99'"),
        ("ask", {"question": JAM, "conversation_id": "x"}, "there is no conversation 'x'"),
        ("ask", {"question": ["jam"]}, "Expected `str`"),
        ("list_documents", {"only": "*.xyz"}, "none of the documents is in '*.xyz'"),
    ],
)
def test_what_is_wrong_with_a_call_is_told(
    tool: str, arguments: dict[str, Any], message: str, mode: str, library: Library
) -> None:
    assert message in told(talk(lambda client: client.call_tool(tool, arguments), make_server(library), mode=mode))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_there_is_an_error_of_the_protocol(mode: str, library: Library) -> None:
    requests: list[Callable[[Client], Any]] = [
        lambda client: client.call_tool("delete_everything", {}),
        lambda client: client.read_resource("file:///etc/passwd"),
        lambda client: client.read_resource("convagent://documents/../../etc/passwd"),
        lambda client: client.read_resource("convagent://passages/nothing"),
        lambda client: client.list_resources(cursor="-1"),
        lambda client: client.get_prompt("nothing", {}),
        lambda client: client.get_prompt(PROMPT, {}),
    ]

    async def conversation(client: Client) -> list[int]:
        codes = []
        for request in requests:
            with pytest.raises(MCPError) as raised:
                await request(client)
            codes.append(raised.value.error.code)
        return codes

    assert talk(conversation, make_server(library), mode=mode) == [-32602] * len(requests)


class Panic(BaseException):
    """As PyO3 raises it where Rust panics: no `Exception`."""


def test_a_panic_ends_its_call_only(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: Any) -> None:
        raise Panic("index out of bounds")

    async def conversation(client: Client) -> list[Any]:
        with monkeypatch.context() as broken:
            broken.setattr(PassageIndex, "find", panic)
            failed = await client.call_tool("read_passage", {"id": JAM_PASSAGE})
        return [failed, await client.call_tool("read_passage", {"id": JAM_PASSAGE})]

    failed, worked = talk(conversation, make_server(library))
    assert "convagent failed (Panic)" in told(failed)
    assert "index out of bounds" not in told(failed)
    assert not worked.is_error


def test_documents_that_cannot_be_read_leave_the_others(notes: Path) -> None:
    write_notes(notes, 1)
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7\nthis is none")
    (notes / "broken.json").write_text("{")
    with closing(open_library(notes)) as opened:
        result = call(make_server(opened), "list_documents")
    assert [document["path"] for document in result.structured_content["documents"]] == ["note-000.txt"]


def test_a_folder_without_documents_is_told_and_looked_at_again(notes: Path) -> None:
    async def conversation(client: Client) -> list[Any]:
        empty = await client.call_tool("search_passages", {"query": "alder"})
        write_notes(notes, 1)
        return [empty, await client.call_tool("search_passages", {"query": "alder"})]

    with closing(open_library(notes)) as opened:
        empty, later = talk(conversation, make_server(opened))
    assert "holds no document that can be read" in told(empty)
    assert found_ids(later) == ["note-000.txt:1-3"]


def test_a_model_that_is_not_there_is_told_where_it_is_needed(library: Library) -> None:
    with closing(open_library(DOCUMENTS, model="nowhere.gguf")) as opened:
        server = make_server(opened)
        assert found_ids(call(server, "search_passages", query=JAM))
        assert "nowhere.gguf: no such model file" in told(call(server, "ask", question=JAM))


# Over stdio


@pytest.mark.parametrize("mode", MODES)
def test_a_client_starts_the_server_itself(mode: str, data: Path) -> None:
    async def conversation(client: Client) -> list[Any]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return [names, await client.call_tool("ask", {"question": JAM})]

    names, answered = talk(conversation, on_stdio(data, "--docs", DOCUMENTS, *NO_MODELS), mode=mode)
    assert names == TOOLS
    assert "two years" in answered.structured_content["answer"]


@needs_model
@needs_embedder
@pytest.mark.model
def test_a_client_is_answered_with_the_bundled_models(data: Path) -> None:
    """Vectors included, and with nothing else on stdout: llama.cpp converts and loads both models here."""
    with RawServer(data, *command("--docs", DOCUMENTS)[1:]) as server:
        server.initialize()
        server.call(1, "ask", question=JAM)
        server.call(2, "search_passages", query=JAM, wait=True)
        answered = server.read_reply(1)["result"]["structuredContent"]
        if 2 not in replied(server):
            server.read_reply(2)
        assert server.end()[0] == 0
        found = next(reply for reply in server.check_output() if reply.get("id") == 2)["result"]["structuredContent"]
    assert JAM_PASSAGE in [citation["id"] for citation in answered["citations"]]
    assert (found["searched_by"], found["passages"][0]["passage"]["id"]) == ("words and meaning", JAM_PASSAGE)


def test_listing_the_tools_loads_neither_model_nor_index(data: Path) -> None:
    with RawServer(data, *command("--docs", DOCUMENTS)[1:]) as server:
        server.initialize()
        server.send("tools/list", 1)
        assert len(server.read_reply(1)["result"]["tools"]) == len(TOOLS)
        loaded = " ".join(part.path for part in psutil.Process(server.process.pid).memory_maps())
        assert server.end()[0] == 0
        assert [name for name in ("llama", "ggml", "tantivy", "numpy", "spacy") if name in loaded] == []


NOISE = """
import ctypes, os, subprocess, sys, threading
from agent.mcp.library import Library

libc, open_documents = ctypes.CDLL(None), Library.open_documents

def make_noise(library, progress):
    print("noise of Python")
    os.write(1, b"noise of a descriptor")
    libc.puts(b"noise of C")
    libc.fflush(None)
    subprocess.run(["echo", "noise of another process"])
    threading.Thread(target=print, args=("noise of a thread",), kwargs={"flush": True}).start()
    return open_documents(library, progress)

Library.open_documents = make_noise
print("noise at start", file=sys.stderr)
from cli import app
app(["mcp", *sys.argv[1:]])
"""


def test_only_the_protocol_is_on_stdout_under_load_and_failure(data: Path, notes: Path) -> None:
    """Parallel calls, some wrong, cancelled or not JSON, over damaged documents, while all kinds of code print."""
    write_notes(notes, 20)
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7\nthis is none")
    (notes / "broken.docx").write_bytes(b"PK\x03\x04 this is none")
    with RawServer(data, "-c", NOISE, "--docs", str(notes), *NO_MODELS) as server:
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
        for id in ids:
            for offset in range(5):
                if id + offset not in replied(server):
                    server.read_reply(id + offset)
        code, error = server.end()
        assert code == 0, error
        assert "noise of C" in error
        assert "noise of another process" in error
        replies = {message["id"]: message for message in server.check_output() if "id" in message}
        assert all(not replies[id]["result"]["isError"] for id in ids)
        assert all("alder number" in replies[id + 1]["result"]["structuredContent"]["answer"] for id in ids)
        assert all(replies[id + 2]["result"]["isError"] and replies[id + 3]["result"]["isError"] for id in ids)
        assert all(replies[id + 4]["error"]["code"] == -32602 for id in ids)
        assert b"noise" not in server.output


def replied(server: RawServer) -> set[int]:
    return {message["id"] for message in map(msgspec.json.decode, server.output.splitlines()) if "id" in message}


TELEMETRY = """
import sys
from opentelemetry import trace

class Provider(trace.NoOpTracerProvider):
    def get_tracer(self, *arguments, **more):
        return Tracer()

class Tracer(trace.NoOpTracer):
    def start_as_current_span(self, name, *arguments, **more):
        print("SPAN", name, file=sys.stderr)
        return super().start_as_current_span(name, *arguments, **more)

trace.set_tracer_provider(Provider())
from cli import app
app(["mcp", *sys.argv[1:]])
"""


def test_there_is_no_telemetry_whatever_is_set_up(data: Path) -> None:
    with RawServer(data, "-c", TELEMETRY, "--docs", str(DOCUMENTS), *NO_MODELS) as server:
        server.initialize()
        server.call(1, "search_passages", query=JAM)
        server.read_reply(1)
        assert "SPAN" not in server.end()[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--docs", "nowhere"), 4, "nowhere: no such file or folder"),
        (("--index", "nowhere"), 4, "nowhere: is no index"),
        ((), 2, "nothing to search was named"),
        (("--docs", ".", "--index", "."), 2, "--docs and --index exclude each other"),
    ],
)
def test_what_cannot_be_served_is_told_at_once_on_stderr(
    arguments: tuple[str, ...], code: int, message: str, data: Path
) -> None:
    done = run("mcp", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_half_a_character_is_replaced_and_answered(data: Path) -> None:
    with RawServer(data, f"{ROOT}/cli.py", "mcp", "--docs", str(DOCUMENTS), *NO_MODELS) as server:
        server.initialize()
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        params = {"name": "search_passages", "arguments": {"query": f"{JAM} \ud800"}}
        server.send_raw(json.dumps(call | {"params": params}).encode() + b"\n")
        assert "result" in server.read_reply(1)


@pytest.mark.parametrize("tool", ["search_passages", "ask"])
def test_a_client_that_goes_while_documents_are_opened_leaves_no_traceback(tool: str, data: Path) -> None:
    asked = {"search_passages": "query", "ask": "question"}[tool]
    for seconds in (0.3, 1.0, 2.0):  # while its modules are loaded, and after
        with RawServer(data, f"{ROOT}/cli.py", "mcp", "--docs", str(DOCUMENTS)) as server:
            server.initialize()
            server.call(1, tool, **{asked: JAM})
            time.sleep(seconds)
            _, told = server.end()
            assert (server.process.returncode, "Traceback" in told) == (0, False), told


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_streams_are_told(closed: str, data: Path) -> None:
    command = f"{sys.executable} {ROOT}/cli.py mcp --docs {DOCUMENTS} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, "stdin or stdout is closed" in done.stderr) == (2, True), done.stderr


def test_the_home_directory_is_found_without_a_shell(data: Path, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notes(notes, 1)
    monkeypatch.setenv("HOME", str(notes.parent))
    found = call(on_stdio(data, "--docs", "~/notes", *NO_MODELS), "search_passages", query="alder")
    assert found_ids(found) == ["note-000.txt:1-3"]


def test_at_a_terminal_it_says_what_it_waits_for(data: Path) -> None:
    program, *arguments = command("--docs", DOCUMENTS)
    with pexpect.spawn(program, arguments, env=environment(data), timeout=PATIENCE) as terminal:
        terminal.expect("Waiting for a client on stdin")


def test_without_the_extra_it_says_what_to_install(data: Path) -> None:
    program = "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None; from cli import app; app()"
    with RawServer(data, "-c", program, "mcp", "--docs", str(DOCUMENTS)) as server:
        code, error = server.end()
        assert (code, server.output) == (4, b"")
        assert "pip install 'convagent[mcp]'" in error


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_ends_by_a_signal_while_it_waits(sent: signal.Signals, code: int, data: Path) -> None:
    with RawServer(data, *command("--docs", DOCUMENTS)[1:]) as server:
        server.initialize()
        server.process.send_signal(sent)
        assert server.process.wait(PATIENCE) == code
        assert "Traceback" not in server.end()[1]


def test_it_ends_when_nobody_reads(data: Path) -> None:
    with RawServer(data, *command("--docs", DOCUMENTS)[1:]) as server:
        server.initialize()
        assert server.process.stdout
        server.process.stdout.close()
        server.send("tools/list", 1)
        assert server.process.wait(PATIENCE) == 0
        assert server.process.stderr
        assert b"Traceback" not in server.process.stderr.read()


# Over HTTP


@pytest.fixture(scope="module")
def port_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with on_port(tmp_path_factory.mktemp("data"), "--docs", DOCUMENTS, *NO_MODELS) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
def test_a_client_with_the_token_is_answered(mode: str, port_server: Any) -> None:
    reports = Reports()

    async def conversation(client: Client) -> list[Any]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return [names, await client.call_tool("ask", {"question": JAM}, progress_callback=reports)]

    names, answered = talk(conversation, port_server.connect(), mode=mode)
    assert names == TOOLS
    assert "two years" in answered.structured_content["answer"]
    assert reports.told


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
REFUSED: list[tuple[str, dict[str, str], int]] = [
    ("POST", {"authorization": ""}, 401),
    ("POST", {"authorization": "Bearer wrong"}, 401),
    ("POST", {"authorization": "Basic TOKEN"}, 401),
    ("GET", {"authorization": ""}, 401),
    ("DELETE", {"authorization": ""}, 401),
    ("OPTIONS", {"authorization": ""}, 401),
    ("POST", {"host": "evil.example"}, 421),
    ("POST", {"host": "127.0.0.1.evil.example:80"}, 421),
    ("GET", {"host": "evil.example"}, 421),
    ("POST", {"origin": "http://evil.example"}, 403),
    ("POST", {"origin": "null"}, 403),
    ("POST", {"origin": "http://localhost:1"}, 403),
    ("GET", {"origin": "http://evil.example"}, 403),
    ("POST", {"sec-fetch-site": "cross-site"}, 403),
]


@pytest.mark.parametrize(("method", "headers", "status"), REFUSED)
def test_others_are_turned_away(method: str, headers: dict[str, str], status: int, port_server: Any) -> None:
    usual = {"authorization": f"Bearer {port_server.token}", "accept": "application/json, text/event-stream"}
    given = {name: value.replace("TOKEN", port_server.token) for name, value in headers.items()}
    with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        refused = client.request(method, port_server.url, json=PING, headers=usual | given)
    assert refused.status_code == status
    assert not [name for name in refused.headers if name.startswith("access-control")]


def test_what_is_too_large_is_turned_away(port_server: Any) -> None:
    headers = {"authorization": f"Bearer {port_server.token}"}
    with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        assert client.post(port_server.url, content=b" " * 300_000, headers=headers).status_code == 413


def test_a_port_that_is_taken_is_told(port_server: Any, data: Path) -> None:
    port = port_server.url.split(":")[2].split("/")[0]
    taken = run("mcp", "--docs", DOCUMENTS, "--http", "--port", port)
    assert (taken.returncode, taken.stdout) == (6, "")
    assert "is in use" in taken.stderr


def test_the_token_stays_unless_incognito(data: Path) -> None:
    tokens = []
    for more in ((), (), ("--incognito",)):
        with on_port(data, "--docs", DOCUMENTS, *NO_MODELS, *more) as running:
            tokens.append(running.token)
    assert tokens[0] == tokens[1] != tokens[2]
    assert (data / "mcp-token").read_text().strip() == tokens[0]
    assert (data / "mcp-token").stat().st_mode & 0o077 == 0


def test_ctrl_c_ends_the_server_on_a_port(data: Path) -> None:
    with on_port(data, "--docs", DOCUMENTS, *NO_MODELS) as running:
        assert not call(running.connect(), "search_passages", query=JAM).is_error
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE) == 0
