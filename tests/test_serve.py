"""The server from outside: what its pages say, which sites it turns away, and how it begins and ends."""

import socket
from pathlib import Path

import httpx
import msgspec
import psutil

from agent.chat.citations import shown_sources
from agent.terminal.output import to_plain_text
from agent.tracks.files import read_topics
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from schemas.records import Hit, Passage, Query, Response, Sentence, TurnResult
from tests import within
from tests.serving import ASKED, NO_MODELS, SHADE, Server, ask, read_all, serving
from tests.test_topics import write


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
    topics = read_topics(write(tmp_path / "topics.json", client.get(f"/chats/{chat}/conversation.json").text))
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


def test_what_cannot_be_done_is_told_in_a_page(client: httpx.Client) -> None:
    for question, told in (("  ", "the question is empty."), ("bread " * 1000, "5999 characters, where at most 4000")):
        page = client.post("/ask", data={"question": question})
        assert (page.status_code, told in page.text) == (400, True)
        assert f">{question}</textarea>" in page.text
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
TURNED = "".join(TURNS)
HOSTILE = f"<script>alert(1)</script> & {{{{ 7 * 7 }}}} Bread {TURNED}keeps for two days in a tin."


def test_what_is_shown_is_never_html_nor_turns_the_direction_of_writing(tmp_path: Path) -> None:
    """In pages, exports, answers to programs and at the terminal; `fdp.exe` would be shown as `exe.pdf`."""
    passage = Passage("<i>1", HOSTILE, "<img src=x onerror=alert(1)>", "javascript:alert(1)")
    (tmp_path / "passages.jsonl").write_bytes(msgspec.json.encode(passage))
    corpus = find_corpus([tmp_path / "passages.jsonl"])
    build_index(corpus, tmp_path / "index", skip_problems=False, progress=lambda: None)
    question = f"<u>How long</u> does bread {TURNED}keep?"
    asked = ASKED | {"messages": [{"role": "user", "content": question}]}
    with serving(tmp_path / "index", tmp_path, *NO_MODELS) as running, running.open_client() as client:
        client.post("/statements", data={"text": f"I {TURNED}bake."})
        page = ask(client, question)
        exported = [client.get(f"{page.url.path}/{name}").text for name in ("conversation.md", "conversation.json")]
        reply = client.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]["content"]
    for raw in ("<script>alert", "<img", "<u>", "<i>", 'href="javascript'):
        assert raw not in page.text
    assert "{{ 7 * 7 }}" in page.text
    shown = [page.text, *exported, reply, to_plain_text(question).plain]
    assert all("read keep" in text for text in shown)
    assert [turn for turn in TURNS for text in shown if turn in text] == []


REFUSED: list[tuple[str, str, dict[str, str], int]] = [
    ("GET", "/", {"host": "evil.example"}, 421),
    ("GET", "/", {"host": "127.0.0.1.evil.example:80"}, 421),
    ("GET", "/", {"host": "evil.example#@127.0.0.1"}, 421),
    ("GET", "/", {"host": ""}, 421),
    ("GET", "/v1/models", {"host": "evil.example"}, 421),
    ("POST", "/statements", {"origin": "http://evil.example"}, 403),
    ("POST", "/statements", {"origin": "null"}, 403),
    ("POST", "/statements", {"origin": "http://127.0.0.1:1"}, 403),
    ("POST", "/chats/1/delete", {"sec-fetch-site": "cross-site"}, 403),
    ("POST", "/v1/chat/completions", {"sec-fetch-site": "cross-site"}, 403),
    ("GET", "/chats/1/delete", {}, 405),
    ("GET", "/ask", {}, 405),
]


def test_other_sites_and_machines_are_turned_away(client: httpx.Client, server: Server) -> None:
    found = [client.request(method, path, headers=headers).status_code for method, path, headers, _ in REFUSED]
    assert found == [status for *_, status in REFUSED]
    for host in ("localhost", "127.0.0.1", "[::1]:80", "LOCALHOST:8080"):  # names of this machine
        assert client.get("/", headers={"host": host}).status_code == 200
    listening = [c for c in psutil.Process(server.process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert [connection.laddr.ip for connection in listening] == ["127.0.0.1"]


OUTSIDE = ["/etc/passwd", "//etc/passwd", "/../pages.py", "/%2e%2e/pages.py", "/..%2fpages.py", "/..%5cpages.py"]
OUTSIDE += ["/%2e%2e%2f%2e%2e%2f%2e%2e%2fpyproject.toml", "/page.css%00.txt", "/" + "../" * 20 + "etc/passwd"]


def test_no_file_but_its_own_can_be_read(server: Server) -> None:
    for path in (f"{folder}{path}" for folder in ("/static", "") for path in OUTSIDE):
        with server.connect() as connection:
            connection.sendall(server.write_head(f"GET {path} HTTP/1.1", "Connection: close"))
            reply = read_all(connection)
        assert reply.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ")), path
        assert not [secret for secret in (b"root:", b"def ", b"[project]") if secret in reply]


def test_a_failing_model_is_told_and_the_question_kept(tmp_path: Path, example_index: PassageIndex) -> None:
    script = write(tmp_path / "script.json", "{}")
    arguments = ("--model", f"scripted:{script}", "--embedder", "none", "--incognito")
    told = "the script has no score number 1"
    said = [*ASKED["messages"], {"role": "assistant", "content": "Hostas and ferns grow well in shade."}]
    said.append({"role": "user", "content": "Which of them?"})
    with serving(example_index.directory, tmp_path / "data", *arguments) as running:
        with running.open_client() as client:
            client.post("/statements", data={"text": "I have a balcony."})
            page = ask(client, SHADE)
            assert told in page.text.lower()
            assert f">{SHADE}</textarea>" in page.text
            for path, body in (("chat/completions", {"messages": said}), ("responses", {"input": said})):
                asked = {"model": "convagent", **body}
                reply = client.post(f"/v1/{path}", json=asked)
                assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")
                streamed = client.post(f"/v1/{path}", json=asked | {"stream": True}).text
                assert "[DONE]" not in streamed
                last = msgspec.json.decode(streamed.strip().rpartition("data: ")[2])
                assert told in last.get("response", last)["error"]["message"]
            assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
        assert running.interrupt() == 0
        assert running.count_tracebacks() == 0
    assert not (tmp_path / "data").exists()


def test_a_port_in_use_is_an_error_before_a_model_is_opened(tmp_path: Path, example_index: PassageIndex) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        called = ("serve", "--index", example_index.directory, "--model", "nowhere.gguf", "--port", port)
        result = within.convagent(*called, CONVAGENT_DATA=str(tmp_path))
    assert result.returncode == 6
    assert f"127.0.0.1:{port}: is in use\n  Give --port another number" in result.stderr


MARKED = [
    ("Bread keeps.", "Bread keeps. Rye keeps longer.", ["Bread keeps."]),
    ("Rye keeps.", "Bread keeps well. Rye, it is said, keeps longer.", ["Rye, it is said, keeps longer."]),
    ("He keeps.", "He keepsakes. He keeps.", ["He keeps."]),
    ("Dogs bark loudly.", "Bread keeps. Rye keeps longer.", []),  # which says nothing of it
]


def test_a_source_is_marked_where_it_says_so() -> None:
    """And not where a sentence only came near."""
    for sentence, text, quotes in MARKED:
        passages = (Passage("p", text), Passage("q", f"{text} Oats keep."))
        response = Response((Sentence(sentence, ("p",)),), nearby=(Sentence("Oats keep.", ("q",)),))
        cited, near = shown_sources(TurnResult("1_1", Query("?"), (), (Hit("p", 1.0),), passages, (response,)))
        assert (list(cited.quotes), cited.cited, near.quotes, near.cited) == (quotes, True, (), False)
        assert "".join(piece.text for piece in cited.pieces) == text
