"""`/v1` as OpenAI's client, `llm` and LangChain ask it: what is heeded, what is said to be ignored, what is refused."""

import operator
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from indexes.passage_index import PassageIndex
from indexes.text.response_length import response_length
from tests.serving import Server, serving
from tests.stand_in import StandIn, standing_in

library, pydantic = pytest.importorskip("openai"), pytest.importorskip("pydantic")

SHADE = "Tell me about plants for a shady balcony."
USER = {"role": "user", "content": SHADE}
ASKED: dict[str, Any] = {"model": "convagent", "messages": [USER]}
IGNORED = "X-Convagent-Ignored"
FUNCTION = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("data")
    with serving(example_index.directory, data, "--model", "none", "--embedder", "none") as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.open_client() as opened:
        yield opened


def open_openai(server: Server) -> Any:
    return library.OpenAI(base_url=f"{server.address}v1", api_key=server.token, max_retries=0)


@pytest.fixture
def openai(server: Server) -> Iterator[Any]:
    with open_openai(server) as opened:
        yield opened


@pytest.fixture
def answer(openai: Any) -> str:
    """The whole answer, of several sentences."""
    return str(openai.chat.completions.create(**ASKED).choices[0].message.content)


def check_types(name: str, *replies: Any) -> None:
    """Raise where a reply is not what the protocol's types say: the client itself takes whatever comes."""
    kind = operator.attrgetter(name)(library.types)
    for reply in replies:
        pydantic.TypeAdapter(kind).validate_python(reply.model_dump())


def join_stream(chunks: Any) -> tuple[str, str, list[int]]:
    """The text of a stream, how it ended, and the numbers of its sources."""
    chunks = list(chunks)
    check_types("chat.ChatCompletionChunk", *chunks)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    *_, last = [chunk for chunk in chunks if chunk.choices]
    return text, last.choices[0].finish_reason, [source["number"] for source in last.citations]


def test_an_answer_comes_with_its_citations_whole_and_as_a_stream(
    openai: Any, client: httpx.Client, answer: str
) -> None:
    check_types("Model", *openai.models.list())
    assert [model.id for model in openai.models.list()] == [openai.models.retrieve("convagent").id] == ["convagent"]
    kept = client.get("/").text.count('href="/chats/')
    whole = openai.chat.completions.create(**ASKED)
    check_types("chat.ChatCompletion", whole)
    first = whole.citations[0]
    assert (sorted(first), first["number"]) == (["id", "number", "place", "quotes", "title", "url"], 1)
    assert all(quote in answer for quote in first["quotes"])
    assert (whole.choices[0].finish_reason, "[1]" in answer) == ("stop", True)
    options = {"include_usage": True}
    chunks = list(openai.chat.completions.create(**ASKED, stream=True, stream_options=options))
    assert join_stream(chunks) == (answer, "stop", [source["number"] for source in whole.citations])
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].citations == whole.citations
    assert (chunks[-1].choices, chunks[-1].usage) == ([], whole.usage)
    assert all(chunk.usage is None for chunk in openai.chat.completions.create(**ASKED, stream=True))
    assert client.get("/").text.count('href="/chats/') == kept


def test_earlier_messages_are_the_conversation_and_small_talk_is_none(openai: Any, answer: str) -> None:
    def say(*contents: Any) -> str:
        roles = ("user", "assistant")
        messages = [{"role": roles[number % 2], "content": content} for number, content in enumerate(contents)]
        return str(openai.chat.completions.create(model="convagent", messages=messages).choices[0].message.content)

    parts = [{"type": "text", "text": "How often do they"}, {"type": "text", "text": "need water?"}]
    followed = say(SHADE, answer, parts)
    assert followed != say(parts)
    assert say("hi") == "Hello. What would you like to know?"
    assert (
        say("hi", "Hello.", SHADE, answer, "thanks!", "You are welcome.", "How often do they need water?") == followed
    )


def test_an_answer_has_whole_sentences_of_so_many_tokens(openai: Any, answer: str) -> None:
    ends = {"", *(answer[: place + 1] for place, character in enumerate(answer) if character == "]")}
    assert len(ends) > 2
    for name in ("max_tokens", "max_completion_tokens"):
        for limit in (1, 10, 30, 45, 60, response_length(answer) - 1):
            whole = openai.chat.completions.create(**ASKED, **{name: limit})
            content = whole.choices[0].message.content
            assert (content in ends, whole.choices[0].finish_reason) == (True, "length")
            assert response_length(content) <= limit
            cited = [source["number"] for source in whole.citations]
            assert all(f"[{number}" in content or f" {number}]" in content for number in cited)
            streamed = openai.chat.completions.create(**ASKED, **{name: limit}, stream=True)
            assert join_stream(streamed) == (content, "length", cited)
    enough = openai.chat.completions.create(**ASKED, max_tokens=response_length(answer)).choices[0]
    assert (enough.message.content, enough.finish_reason) == (answer, "stop")


@pytest.mark.parametrize("limit", [None, 60, 30])
def test_the_quotes_of_a_source_are_in_the_answer(limit: int | None, openai: Any) -> None:
    """Neither what came near, nor what was cut off."""
    for asked in (ASKED, ASKED | {"messages": [USER | {"content": "What should I know about bread without gluten?"}]}):
        reply = openai.chat.completions.create(**asked, max_tokens=limit)
        content = reply.choices[0].message.content.replace("\\", "")
        quotes = [quote.removesuffix(".") for source in reply.citations for quote in source["quotes"]]
        assert [quote for quote in quotes if quote not in content] == []
        assert bool(quotes) == bool(content)


def test_a_header_names_what_has_no_effect(openai: Any, answer: str, client: httpx.Client) -> None:
    instructed = ASKED | {"messages": [{"role": "developer", "content": "Answer in French."}, USER]}
    sampled = {"temperature": 0.2, "top_p": 0.5, "seed": 7, "presence_penalty": 1.0, "stop": ["shade"]}
    for stream in (False, True):
        reply = openai.chat.completions.with_raw_response.create(**instructed, **sampled, stream=stream)
        named = reply.headers[IGNORED].split(", ")
        assert sorted(named) == ["developer messages", "presence_penalty", "seed", "stop", "temperature", "top_p"]
    tools = {"tools": [FUNCTION], "tool_choice": "none"}
    reply = openai.chat.completions.with_raw_response.create(**ASKED, **tools)
    assert (reply.headers[IGNORED], reply.parse().choices[0].message.content) == ("tools", answer)
    plain = {
        "temperature": None,
        "response_format": {"type": "text"},
        "n": 1,
        "logprobs": False,
        "modalities": ["text"],
    }
    assert IGNORED not in client.post("/v1/chat/completions", json=ASKED | plain).headers
    odd = client.post("/v1/chat/completions", json=ASKED | {"a\r\nX-Evil": 1, "x" * 99: 1, "ü": 1, "top_k": 3})
    assert (odd.headers[IGNORED], "X-Evil" in odd.headers) == ("top_k", False)


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
SHOWN = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}
VALUE, PARAMETER = "unsupported_value", "unsupported_parameter"
REFUSED: list[tuple[Any, str | None, str | None, str]] = [
    # the body, or what is added to a request; the parameter and the code of the error; what is said
    (b"{oops", None, None, "is not JSON"),
    (b"[]", None, None, "Expected `object`"),
    (b'{"messages": []}', "model", None, "missing required field `model`"),
    (b'{"model": "convagent"}', "messages", None, "missing required field `messages`"),
    ({"model": "gpt-9"}, "model", "model_not_found", "unknown model 'gpt-9' (available: convagent)"),
    ({"messages": []}, "messages", None, "the last message must be the user's"),
    ({"messages": [USER | {"content": " "}]}, "messages", None, "the last message must be"),
    ({"messages": [USER | {"content": 7}]}, "messages[0].content", None, "Expected `str | array`"),
    ({"messages": [USER | {"content": "x" * 4001}]}, "messages", None, "the question is too long"),
    ({"messages": [USER, USER | {"role": "assistant"}]}, "messages", None, "the last message"),
    ({"messages": [USER | {"role": "tool"}]}, "messages[0].role", None, "'tool'"),
    ({"messages": [SHOWN]}, "messages[0].content[1].type", VALUE, "only text can be read"),
    ({"stream": "yes"}, "stream", None, "Expected `bool | null`"),
    ({"n": 2}, "n", VALUE, "n must be 1"),
    ({"tools": [FUNCTION]}, "tools", PARAMETER, "tools cannot be called"),
    ({"tools": [FUNCTION], "tool_choice": "required"}, "tools", PARAMETER, "tools cannot be called"),
    ({"functions": [{}]}, "functions", PARAMETER, "functions cannot be called"),
    ({"response_format": {"type": "json_object"}}, "response_format", VALUE, "cannot be 'json_object'"),
    ({"logprobs": True}, "logprobs", PARAMETER, "logprobs cannot be given"),
    ({"modalities": ["text", "audio"]}, "modalities", VALUE, "is text"),
    ({"max_tokens": 0}, "max_tokens", None, "Expected `int` >= 1"),
    ({"model": "x" * 9999}, "model", "model_not_found", "unknown model"),
    ({"response_format": {"type": "x" * 9999}}, "response_format", VALUE, "cannot be"),
]


def test_what_cannot_be_read_or_heeded_is_refused_in_openais_form(client: httpx.Client) -> None:
    for added, param, code, told in REFUSED:
        for stream in (False, True):
            body = added if isinstance(added, bytes) else msgspec.json.encode(ASKED | {"stream": stream} | added)
            reply = client.post("/v1/chat/completions", content=body)
            error = reply.json()["error"]
            assert reply.status_code == (404 if code == "model_not_found" else 400)
            assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
            assert told in error["message"]
            assert len(error["message"]) < 600  # which repeats little of what was sent
    for path, status in (("chat/completions", 405), ("nothing", 404), (f"models/{'x' * 5000}", 404)):
        reply = client.get(f"/v1/{path}")
        assert (reply.status_code, reply.json()["error"]["type"]) == (status, "invalid_request_error")
        assert len(reply.text) < 800


def test_usage_counts_what_a_reply_from_the_cache_had_taken(
    tmp_path: Path, example_index: PassageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    options = {"include_usage": True}
    with standing_in() as address:
        arguments = ("--model", f"{address}#big", "--embedder", "none", "--incognito")
        with serving(example_index.directory, tmp_path, *arguments) as running, open_openai(running) as openai:
            first = openai.chat.completions.create(**ASKED).usage
            asked = len(StandIn.asked)
            again = openai.chat.completions.create(**ASKED).usage
            *_, last = openai.chat.completions.create(**ASKED, stream=True, stream_options=options)
            assert len(StandIn.asked) == asked
    assert first.prompt_tokens > 0 < first.completion_tokens
    assert first.prompt_tokens_details.cached_tokens == 0
    for usage in (again, last.usage):
        assert usage.prompt_tokens == first.prompt_tokens == usage.prompt_tokens_details.cached_tokens
        assert usage.completion_tokens == first.completion_tokens
        assert usage.total_tokens == first.total_tokens


@pytest.mark.parametrize("limit", [None, 30])
def test_usage_of_a_quoted_answer_is_what_was_asked_and_sent(limit: int | None, openai: Any) -> None:
    earlier = [{"role": "user", "content": "Thanks!"}, {"role": "assistant", "content": "You are welcome."}]
    asked, options = {"model": "convagent", "messages": [*earlier, USER]}, {"include_usage": True}
    whole = openai.chat.completions.create(**asked, max_tokens=limit)
    *_, last = openai.chat.completions.create(**asked, max_tokens=limit, stream=True, stream_options=options)
    read = sum(response_length(message["content"]) for message in (*earlier, USER))
    written = response_length(whole.choices[0].message.content)
    assert 0 < written <= (limit or written)
    for usage in (whole.usage, last.usage):
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (read, written, read + written)
