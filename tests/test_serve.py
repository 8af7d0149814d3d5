"""The server from outside: whom it lets in, what the pages say, and `/v1` as OpenAI's own client speaks it."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
import pytest

from agent.chat.citations import cited_sources, shown_sources
from agent.chat.observer import Observer
from agent.chat.self_disclosure import find_self_disclosures
from agent.models.cancellation import AnswerCancelledError
from agent.serve.request_queue import RequestQueue
from agent.terminal.output import to_plain_text
from agent.tracks.topic_files import read_topics
from indexes.passage_index import PassageIndex
from schemas.records import Call, Hit, Passage, Query, Response, Sentence, Statement, TurnResult
from tests.conftest import PATIENCE
from tests.serving import Server, command, environment, serving, serving_source
from tests.test_topics import write

SHADE = "Which plants grow well in pots on a shady balcony?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("data")
    with serving(example_index.directory, data, "--model", "none", "--embedder", "none") as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.open_client() as opened:
        yield opened


def ask(client: httpx.Client, question: str, **fields: str) -> httpx.Response:
    """The page once the answer is there, without scripts."""
    page = client.post("/ask", data={"question": question, **fields})
    while "data-working" in page.text:
        page = client.get(page.url)
    return page


# Pages


def test_a_conversation_without_scripts(client: httpx.Client, tmp_path: Path) -> None:
    page = ask(client, SHADE)
    chat = page.url.path.removeprefix("/chats/")
    assert "<mark>" in page.text
    page = ask(client, "How often do they need water?", chat=chat)
    assert page.url.path == f"/chats/{chat}"
    assert page.text.count('<p class="answer">') == 2
    assert chat in client.get("/", params={"q": "SHADY often"}).text
    assert "No conversation has these words" in client.get("/", params={"q": "shady zebra"}).text
    markdown = client.get(f"/chats/{chat}/conversation.md")
    assert markdown.text.startswith(f"# {SHADE}")
    assert "attachment" in markdown.headers["content-disposition"]
    topics = read_topics(write(tmp_path / "topics.json", client.get(f"/chats/{chat}/topics.json").text))
    assert len(topics.turn_ids()) == 2
    assert client.post(f"/chats/{chat}/delete").url.path == "/"
    assert client.get(f"/chats/{chat}").status_code == 404


def test_statements_are_added_changed_and_forgotten(client: httpx.Client) -> None:
    page = client.post("/statements", data={"text": "I <b>bake</b>."})
    assert "I &lt;b&gt;bake&lt;/b&gt;." in page.text
    assert "<b>bake" not in page.text
    where = page.text.partition('action="/statements/')[2].partition('"')[0]
    assert "I sing." in client.post(f"/statements/{where}", data={"text": "I sing."}).text
    assert "I sing." not in client.post(f"/statements/{where}", data={"do": "forget"}).text
    gone = client.post(f"/statements/{where}", data={"do": "forget"})
    assert (gone.status_code, "There is no statement" in gone.text) == (404, True)
    assert client.post("/statements", data={"text": " ", "back": "//elsewhere.example"}).status_code == 400


def test_a_question_that_cannot_be_asked_is_kept_in_its_field(client: httpx.Client) -> None:
    for question, told in (("  ", "the question is empty."), ("bread " * 1000, "5999 characters, where at most 4000")):
        page = client.post("/ask", data={"question": question})
        assert (page.status_code, told in page.text) == (400, True)
        assert f">{question}</textarea>" in page.text


def test_what_is_not_there_is_told_in_a_page(client: httpx.Client) -> None:
    for path in ("/nowhere", "/chats/999", "/chats/x", "/asked/nothing"):
        page = client.get(path)
        assert (page.status_code, 'role="alert"' in page.text) == (404, True)


def test_nothing_of_a_page_comes_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "http" not in page.text.replace("http-equiv", "")
    for path in ("page.css", "page.js", "htmx-2.0.11.min.js", "htmx-LICENSE.txt", "icon.svg"):
        assert client.get(f"/static/{path}").status_code == 200


TURNS = [chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]


def test_nothing_turns_the_direction_of_writing(tmp_path: Path) -> None:
    """In pages, exports, answers to programs and at the terminal; `fdp.exe` would be shown as `exe.pdf`."""
    turned = "".join(TURNS)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bread.md").write_text(f"The rye bread {turned}keeps for nine days.\n")
    arguments = ("--model", "none", "--embedder", "none")
    question = f"How long does the rye bread {turned}keep?"
    asked = {"model": "convagent", "messages": [{"role": "user", "content": question}]}
    with (
        serving_source("--docs", tmp_path / "notes", tmp_path / "data", *arguments) as running,
        running.open_client() as client,
    ):
        client.post("/statements", data={"text": f"I {turned}bake."})
        page = ask(client, question)
        path = page.url.path
        document = client.get("/documents/bread.md", params={"at": "1", "chat": path.rpartition("/")[2], "turn": "1"})
        exported = [client.get(f"{path}/{name}") for name in ("conversation.md", "topics.json")]
        reply = client.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]["content"]
    shown = [page.text, document.text, *(export.text for export in exported), reply, to_plain_text(question).plain]
    assert all("bread keep" in text for text in shown)
    assert [turn for turn in TURNS for text in shown if turn in text] == []


HOSTILE = "<script>alert(1)</script> & {{ 7 * 7 }} Bread keeps for two days in a tin."


def test_passages_and_questions_are_never_html(tmp_path: Path) -> None:
    from indexes.corpora.corpus import find_corpus
    from indexes.index_builder import build_index

    passage = Passage("<i>1", HOSTILE, "<img src=x onerror=alert(1)>", "javascript:alert(1)")
    (tmp_path / "passages.jsonl").write_bytes(msgspec.json.encode(passage))
    corpus = find_corpus([tmp_path / "passages.jsonl"])
    build_index(corpus, tmp_path / "index", skip_problems=False, progress=lambda: None)
    arguments = ("--model", "none", "--embedder", "none")
    with serving(tmp_path / "index", tmp_path, *arguments) as running, running.open_client() as client:
        page = ask(client, "<u>How long</u> does bread keep?").text
    for raw in ("<script>alert", "<img", "<u>", "<i>", 'href="javascript'):
        assert raw not in page
    assert "{{ 7 * 7 }}" in page


# Whom it lets in

REFUSED: list[tuple[str, str, dict[str, str], int]] = [
    ("GET", "/", {"host": "evil.example"}, 421),
    ("GET", "/", {"host": "127.0.0.1.evil.example:80"}, 421),
    ("GET", "/", {"host": "evil.example#@127.0.0.1"}, 421),
    ("GET", "/", {"host": "["}, 421),
    ("GET", "/", {"host": ""}, 421),
    ("GET", "/v1/models", {"host": "evil.example"}, 421),
    ("POST", "/statements", {"origin": "http://evil.example"}, 403),
    ("POST", "/statements", {"origin": "null"}, 403),
    ("POST", "/statements", {"origin": "http://127.0.0.1:1"}, 403),
    ("POST", "/chats/1/delete", {"sec-fetch-site": "cross-site"}, 403),
    ("POST", "/chats/1/delete", {"sec-fetch-site": "same-site"}, 403),
    ("POST", "/v1/chat/completions", {"sec-fetch-site": "cross-site"}, 403),
    ("GET", "/chats/1/delete", {}, 405),
    ("GET", "/ask", {}, 405),
]


def test_other_sites_are_turned_away(client: httpx.Client) -> None:
    found = [client.request(method, path, headers=headers).status_code for method, path, headers, _ in REFUSED]
    assert found == [status for *_, status in REFUSED]
    for host in ("localhost", "127.0.0.1", "[::1]:80", "LOCALHOST:8080"):  # names of this machine
        assert client.get("/", headers={"host": host}).status_code == 200


def test_only_this_machine_is_listened_to(server: Server) -> None:
    listening = [c for c in psutil.Process(server.process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert [connection.laddr.ip for connection in listening] == ["127.0.0.1"]


OUTSIDE = ["/etc/passwd", "//etc/passwd", "/../pages.py", "/%2e%2e/pages.py", "/..%2fpages.py", "/..%5cpages.py"]
OUTSIDE += [
    "/....//pages.py",
    "/%2e%2e%2f%2e%2e%2f%2e%2e%2fpyproject.toml",
    "/page.css%00.txt",
    "/" + "../" * 20 + "etc/passwd",
]


def _request_raw(path: str, host: str, token: str) -> bytes:
    lines = (f"GET {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}", "Connection: close", "", "")
    return "\r\n".join(lines).encode()


def test_no_file_but_its_own_can_be_read(server: Server) -> None:
    """Asked for byte by byte: a client of good manners would mend the path."""
    host = httpx.URL(server.address).netloc.decode()
    for path in (f"{folder}{path}" for folder in ("/static", "") for path in OUTSIDE):
        with socket.create_connection(tuple(host.split(":"))) as connection:  # type: ignore[arg-type]
            connection.sendall(_request_raw(path, host, server.token))
            reply = b"".join(iter(lambda: connection.recv(65536), b""))
        assert reply.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ")), path
        assert not [secret for secret in (b"root:", b"def ", b"[project]") if secret in reply]


def test_a_body_in_chunks_may_be_so_large(client: httpx.Client) -> None:
    assert client.post("/v1/chat/completions", content=iter([b"x" * 100_000] * 3)).status_code == 413


# /v1


@pytest.fixture
def openai(server: Server) -> Iterator[Any]:
    library = pytest.importorskip("openai")
    with library.OpenAI(base_url=f"{server.address}v1", api_key=server.token, max_retries=0) as opened:
        yield opened


USER = {"role": "user", "content": SHADE}
ASSISTANT = {"role": "assistant", "content": "Hostas and ferns grow well in shade."}


def test_openais_client_gets_an_answer_with_its_citations(openai: Any, client: httpx.Client) -> None:
    assert [model.id for model in openai.models.list()] == ["convagent"]
    assert openai.models.retrieve("convagent").owned_by == "local"
    kept = client.get("/").text.count('href="/chats/')
    instructed = [{"role": "system", "content": "Answer in French."}, USER]
    whole = openai.chat.completions.create(model="convagent", messages=instructed, temperature=0.2)
    message = whole.choices[0].message
    assert whole.choices[0].finish_reason == "stop"
    assert "[1]" in message.content
    first = whole.citations[0]
    assert sorted(first) == ["id", "number", "place", "quotes", "title", "url"]
    assert first["number"] == 1
    assert all(quote in message.content for quote in first["quotes"])
    assert openai.chat.completions.create(model="convagent", messages=[USER]).choices == whole.choices
    assert client.get("/").text.count('href="/chats/') == kept


def test_earlier_messages_are_the_conversation(openai: Any) -> None:
    first = openai.chat.completions.create(model="convagent", messages=[USER]).choices[0].message.content
    parts = [{"type": "text", "text": "How often do they"}, {"type": "text", "text": "need water?"}]
    messages = [USER, {"role": "assistant", "content": first}, {"role": "user", "content": parts}]
    alone = openai.chat.completions.create(model="convagent", messages=messages[2:])
    followed = openai.chat.completions.create(model="convagent", messages=messages)
    assert followed.choices[0].message.content != alone.choices[0].message.content


def test_small_talk_is_answered_and_left_out_of_what_follows(openai: Any) -> None:
    def say(*texts: str) -> Any:
        roles = ("user", "assistant")
        messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
        return openai.chat.completions.create(model="convagent", messages=messages)

    assert say("hi").choices[0].message.content == "Hello. What would you like to know?"
    account = "Tell me about plants for a shady balcony."
    first = say(account).choices[0].message.content
    follow_up = "How often do they need water?"
    plain = say(account, first, follow_up).choices
    assert say("hi", "Hello.", account, first, "thanks!", "You are welcome.", follow_up).choices == plain


def test_a_stream_says_the_same_sentence_by_sentence(openai: Any) -> None:
    whole = openai.chat.completions.create(model="convagent", messages=[USER])
    options = {"include_usage": True}
    chunks = list(
        openai.chat.completions.create(model="convagent", messages=[USER], stream=True, stream_options=options)
    )
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert said == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-2].citations == whole.citations
    assert (chunks[-1].choices, chunks[-1].usage) == ([], whole.usage)
    unasked = list(openai.chat.completions.create(model="convagent", messages=[USER], stream=True))
    assert all(chunk.usage is None for chunk in unasked)


WRONG: list[tuple[Any, int, str | None, str]] = [
    # the request, the status, the parameter that is wrong, what is said
    (b"{oops", 400, None, "is not JSON"),
    ([], 400, None, "Expected `object`"),
    ({"messages": [USER]}, 400, "model", "missing required field `model`"),
    ({"model": "convagent"}, 400, "messages", "missing required field `messages`"),
    ({"model": "gpt-9", "messages": [USER]}, 404, "model", "unknown model 'gpt-9' (available: convagent)"),
    ({"model": "convagent", "messages": []}, 400, "messages", "the last message must be the user's"),
    ({"model": "convagent", "messages": [USER | {"content": " "}]}, 400, "messages", "the last message must be"),
    ({"model": "convagent", "messages": [USER | {"content": 7}]}, 400, "messages[0].content", "Expected `str | array`"),
    ({"model": "convagent", "messages": [USER, USER | {"role": "assistant"}]}, 400, "messages", "the last message"),
    ({"model": "convagent", "messages": [{"role": "tool", "content": "x"}]}, 400, "messages[0].role", "'tool'"),
    ({"model": "convagent", "messages": [USER], "stream": "yes"}, 400, "stream", "Expected `bool | null`"),
]


def test_a_wrong_request_is_an_error_in_openais_form(client: httpx.Client) -> None:
    for asked, status, param, told in WRONG:
        body = asked if isinstance(asked, bytes) else msgspec.json.encode(asked)
        reply = client.post("/v1/chat/completions", content=body)
        error = reply.json()["error"]
        assert (reply.status_code, error["type"], error["param"]) == (status, "invalid_request_error", param)
        assert told in error["message"]


def test_paths_of_v1_answer_in_its_form(client: httpx.Client) -> None:
    for reply, status in ((client.get("/v1/chat/completions"), 405), (client.get("/v1/nothing"), 404)):
        assert (reply.status_code, reply.json()["error"]["type"]) == (status, "invalid_request_error")


# A model that fails; incognito; the process


def test_a_failing_model_is_told_and_the_question_kept(tmp_path: Path, example_index: PassageIndex) -> None:
    script = write(tmp_path / "script.json", "{}")
    arguments = ("--model", f"scripted:{script}", "--embedder", "none", "--incognito")
    with serving(example_index.directory, tmp_path / "data", *arguments) as running:
        client = running.open_client()
        client.post("/statements", data={"text": "I have a balcony."})
        page = ask(client, SHADE)
        assert "The script has no score number 1" in page.text
        assert f">{SHADE}</textarea>" in page.text
        follow_up = {"model": "convagent", "messages": [USER, ASSISTANT, {"role": "user", "content": "Which of them?"}]}
        reply = client.post("/v1/chat/completions", json=follow_up)
        assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")
        streamed = client.post("/v1/chat/completions", json=follow_up | {"stream": True})
        assert "the script has no score number 1" in streamed.text
        assert "[DONE]" not in streamed.text
        response = {"model": "convagent", "input": follow_up["messages"]}
        assert client.post("/v1/responses", json=response).status_code == 500
        streamed = client.post("/v1/responses", json=response | {"stream": True})
        last = msgspec.json.decode(streamed.text.strip().rpartition("data: ")[2])
        assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
        assert "the script has no score number 1" in last["response"]["error"]["message"]
        client.close()
        assert running.interrupt() == 0
        assert running.process.stderr
        assert "Traceback" not in running.process.stderr.read()
    assert not (tmp_path / "data").exists()


def test_a_port_in_use_is_an_error_before_a_model_is_opened(tmp_path: Path, example_index: PassageIndex) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        called = command("--index", example_index.directory, "--model", "nowhere.gguf", "--port", str(port))
        result = subprocess.run(called, env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 6
    assert f"127.0.0.1:{port}: is in use\n  Give --port another number" in result.stderr


# What the pages are made of


def test_questions_wait_and_can_be_cancelled() -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(observer: Observer) -> str:
        started.set()
        go_on.wait(PATIENCE)
        observer.report(Call("search", "search", "bread", "2 passages"))
        return "done"

    with RequestQueue() as queue:
        first, *others = [queue.submit(work) for _ in range(3)]
        started.wait(PATIENCE)
        first.cancel()
        others[0].cancel()
        go_on.set()
        assert others[1].future.result(PATIENCE) == "done"
        assert others[1].steps == ["searched for “bread”, 2 passages"]
        assert others[0].future.cancelled()
        assert isinstance(first.future.exception(PATIENCE), AnswerCancelledError)
        assert first.steps == others[1].steps


SELF = [
    ("Which plants are safe for cats?", ()),
    ("I have two cats. Which plants are safe?", ("I have two cats.",)),
    ("I have two cats, which plants are safe?", ("I have two cats.",)),
    ("As I'm allergic to nuts, what can I bake?", ("I'm allergic to nuts.",)),
    ("I live in the mountains and my balcony faces north", ("I live in the mountains and my balcony faces north.",)),
    ("my oven is small; how do I bake in it?", ("My oven is small.",)),
    ("I wonder what grows in shade.", ()),
    ("Can I keep my cats?", ()),
    ("I bake bread.", ()),  # known already
]


def test_what_somebody_says_of_themselves() -> None:
    known = [Statement("1", "i bake bread.")]
    assert [find_self_disclosures(utterance, known) for utterance, _ in SELF] == [expected for _, expected in SELF]


MARKED = [
    ("Bread keeps.", "Bread keeps. Rye keeps longer.", ["Bread keeps."]),
    ("Rye keeps longer.", "Bread keeps.\nRye  keeps\nlonger. So.", ["Rye keeps longer."]),
    ("Rye keeps.", "Bread keeps well. Rye, it is said, keeps longer.", ["Rye, it is said, keeps longer."]),
    ("Rye keeps.", "Rye keeps; wheat does not", ["Rye keeps"]),
    ("He keeps.", "He keepsakes. He keeps.", ["He keeps."]),
    ("Dogs bark loudly.", "Bread keeps. Rye keeps longer.", []),  # which says nothing of it
]


def test_a_source_is_marked_where_it_says_so() -> None:
    for sentence, text, quotes in MARKED:
        answer, passage = Response((Sentence(sentence, ("p",)),)), Passage("p", text)
        (source,) = cited_sources(TurnResult("1_1", Query("?"), (), (Hit("p", 1.0),), (passage,), (answer,)))
        assert list(source.quotes) == quotes
        assert "".join(piece.text for piece in source.pieces) == text


def test_what_came_near_is_marked_in_no_source() -> None:
    passages = (Passage("p", "Bread keeps. Rye keeps longer."), Passage("q", "Oats keep."))
    near = (Sentence("Rye keeps longer.", ("p",)), Sentence("Oats keep.", ("q",)))
    response = Response((Sentence("Bread keeps.", ("p",)),), nearby=near)
    sources = shown_sources(TurnResult("1_1", Query("?"), (), (Hit("p", 1.0),), passages, (response,)))
    assert [(source.number, source.cited, source.quotes) for source in sources] == [
        (1, True, ("Bread keeps.",)),
        (2, False, ()),
    ]
