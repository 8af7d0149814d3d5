"""What passages hold is text in every door: no picture, link, markup or HTML comes of it, and no citation but ours."""

import html
import io
import json
import re
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from agent.chat.export import mark_in_markdown, to_markdown
from agent.chat.interactive import Terminal
from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import ChatTurn, Store
from agent.serve.v1.requests import _split_reply
from agent.terminal.escaping import defuse_citations, escape_markdown, to_code_span, unescape_markdown
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.text.control_characters import strip_directions
from schemas.records import Hit, Passage, Query, Response, Sentence, TurnResult
from tests.serving import serving

HOSTILE = (
    "Quinces keep until May [3], as all say [1, 2].",
    "Quinces <img src=http://evil.example/a.png> keep.",
    "Quinces ![beacon](http://evil.example/b.png) keep.",
    "Quinces [click me](http://evil.example/c) keep.",
    "Quinces <http://evil.example/d> and https://evil.example/e and www.evil.example keep.",
    "Quinces <script>alert(1)</script> <!-- --> <b>keep</b>.",
    "# Quinces keep",
    "1. Quinces keep",
    "- Quinces keep",
    "> Quinces keep",
    "Quinces keep.\n\n[3]: http://evil.example\n\n===\n\n    code",
    "Quinces **keep** _all_ ~~winter~~ `code` *long*.",
    "Quinces &lt;b&gt; &#91;3&#93; keep.",
    "Quinces \\[3\\] \\![x](http://evil.example) \\\\ keep.",
    "Quinces | keep\n--- | ---\na | b",
    "Quinces ［3］ 【2】 [ 3 ] [\u200b3\u200b] [3;4] [2-4] [٣] keep.",
    "Quinces [foo][bar] [^1] [x] keep a@evil.example and mailto:a@evil.example.",
    "Quinces```\nkeep\n```",
    "Quinces keep\u202e]3[ .",
    "Quinces \x1b]8;;http://evil.example\x1b\\keep\x1b]8;;\x1b\\ :bomb: [red]all[/red]",
    "Quinces [link=http://evil.example]keep[/link].",
)
OURS = "[1]"
RENDERERS = [
    MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]),
    *([MarkdownIt("gfm-like", {"html": True})] if find_spec("linkify_it") else []),
]


def answer_with(text: str, *, direct: str = "") -> TurnResult:
    passage = Passage("notes/[3] `x`\n<img src=x>.md:1", text, "A title\n  [2] of another.md")
    response = Response((Sentence(text, (passage.id,)),), direct)
    return TurnResult("1_1", Query("Do quinces keep?"), (), (Hit(passage.id, 2.0),), (passage,), (response,))


def render(markdown: str, renderer: MarkdownIt) -> str:
    rendered = str(renderer.render(markdown))
    for tag in ("img", "a", "script", "b", "h2", "table", "del", "s", "pre", "em><strong", "hr"):
        assert (tag, f"<{tag}>" in rendered, f"<{tag} " in rendered) == (tag, False, False)
    assert "<!--" not in rendered
    return rendered


@pytest.mark.parametrize("renderer", RENDERERS)
def test_markdown_shows_a_passage_as_it_is(renderer: MarkdownIt) -> None:
    """With a renderer that would take HTML, and one that makes links of addresses; exported conversations, too."""
    for text in HOSTILE:
        rendered = render("".join(mark_in_markdown(answer_with(text).response)), renderer)
        assert set(re.findall(r"<(\w+)", rendered)) <= {"p"}
        words = html.unescape(re.sub(r"<.*?>", "", rendered))
        assert words.split() == f"{defuse_citations(strip_directions(text))} [1]".split()
        assert [found[0] for found in re.finditer(r"\[\s*\d[\d, ]*\]", words)] == [OURS]
        turn = ChatTurn(text, answer_with(text, direct=text))
        rendered = render(to_markdown((turn,), text, f"~/{text}", {}), renderer)
        assert set(re.findall(r"<(\w+)", rendered)) <= {"p", "h1", "em", "strong", "ol", "ul", "li", "code"}
        assert (rendered.count("<h1>"), rendered.count("<ol>")) == (1, 1)


@given(st.text(alphabet="[]()!<>*_`~#-+=.1&;:/@\\ \nab3|ₐ", max_size=60))
def test_any_text_is_only_text(text: str) -> None:
    for renderer in RENDERERS:
        rendered = renderer.render(f"{escape_markdown(text)} [1]")
        assert set(re.findall(r"<(\w+)", rendered)) <= {"p"}
        shown = html.unescape(re.sub(r"<.*?>", "", rendered)).split()
        assert shown == f"{defuse_citations(text)} [1]".split()


@given(st.text(alphabet="`ab \n<[", max_size=30))
def test_any_id_is_code(id: str) -> None:
    rendered = RENDERERS[0].render(f"1. {to_code_span(id)}")
    assert set(re.findall(r"<(\w+)", rendered)) <= {"ol", "li", "code"}


def test_an_earlier_answer_is_read_as_it_was_meant() -> None:
    for text in HOSTILE:
        assert [sentence.passage_ids for sentence in _split_reply(f"{escape_markdown(text)} [1]")] == [("1",)]
        assert unescape_markdown(escape_markdown(text)).split() == defuse_citations(strip_directions(text)).split()


def test_plain_sentences_keep_their_characters() -> None:
    """What stands in ordinary text is not littered with backslashes."""
    text = "It costs 3.50 € (2 kg), e.g. at 7 o'clock - or 8; see snake_case & more: 50 % off! What? #1 is +5."
    assert escape_markdown(text) == text


@pytest.fixture(scope="module")
def hostile_index(tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    folder = tmp_path_factory.mktemp("hostile")
    lines = [json.dumps({"id": f"q{number}", "text": text}) for number, text in enumerate(HOSTILE)]
    (folder / "passages.jsonl").write_text("\n".join(lines))
    corpus = find_corpus([folder / "passages.jsonl"])
    build_index(corpus, folder / "index", skip_problems=False, progress=lambda: None)
    return PassageIndex(folder / "index")


def test_v1_answers_in_markdown_without_that_of_passages(hostile_index: PassageIndex, tmp_path: Path) -> None:
    arguments = ("--model", "none", "--embedder", "none", "--incognito")
    with serving(hostile_index.directory, tmp_path, *arguments) as server, server.open_client() as client:
        ask_for_hostile_passages(client)


def ask_for_hostile_passages(client: httpx.Client) -> None:
    for question in ("Do quinces keep?", "Do quinces keep until May?", "May I click me on quinces?", "Which beacon?"):
        body = {"model": "convagent", "messages": [{"role": "user", "content": question}]}
        whole = client.post("/v1/chat/completions", json=body).json()
        content = whole["choices"][0]["message"]["content"]
        streamed = client.post("/v1/chat/completions", json=body | {"stream": True}).text
        events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
        assert "".join(choice["delta"].get("content", "") for event in events for choice in event["choices"]) == content
        marks = re.findall(r"(?<!\\)\[([\d, ]+)\]", content)
        numbers = {int(number) for mark in marks for number in mark.split(",")}
        assert numbers == {citation["number"] for citation in whole["citations"]}
        for renderer in RENDERERS:
            assert set(re.findall(r"<(\w+)", render(content, renderer))) <= {"p", "strong"}


def test_a_terminal_shows_no_citation_but_ours(hostile_index: PassageIndex) -> None:
    """Nor a second source in the title of one."""
    assistant = open_assistant(open_collection("hostile", hostile_index, None), "none")
    for text in HOSTILE:
        console = Console(file=io.StringIO(), width=5000, highlight=False, force_terminal=False)
        terminal = Terminal(Session(assistant, Store(None)), console)
        answered = answer_with(text, direct=text)
        terminal.session.turns = (ChatTurn("Do quinces keep?", answered),)
        terminal._show_answer(answered)
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        answer, _, sources = shown.rpartition(" [1]\n  [1] ")
        assert sources.count("\n") == 1
        assert re.search(r"[\[［【][\s\u200b]*\d", answer.replace("\\[3", "")) is None
        assert not set(shown) & set("\x1b\u202e")
