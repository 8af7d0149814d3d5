"""`/v1` as OpenAI's client, `llm` and LangChain ask it: what is heeded, what is said to be ignored, what is refused."""

import base64
import operator
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from agent.models.cancellation import AnswerCancelledError, CancellationToken
from agent.serve.v1.embeddings import MAX_TEXTS, embed_texts
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.storage.cache import Cache
from indexes.text.response_length import response_length
from tests.conftest import needs_embedder
from tests.serving import Server, serving
from tests.stand_in import StandIn, standing_in

library, pydantic = pytest.importorskip("openai"), pytest.importorskip("pydantic")

SHADE = "Tell me about plants for a shady balcony."
USER = {"role": "user", "content": SHADE}
ASKED: dict[str, Any] = {"model": "convagent", "messages": [USER]}
POSED: dict[str, Any] = {"model": "convagent", "input": SHADE}
IGNORED = "X-Convagent-Ignored"
FUNCTION = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "A", "schema": {"type": "object"}}}


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


# What is heeded


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


def test_text_is_the_format_of_an_answer_and_its_parts_are_joined(openai: Any, answer: str) -> None:
    parts = [{"type": "text", "text": text} for text in ("Tell me about plants", "for a shady balcony.")]
    asked = ASKED | {"messages": [{"role": "user", "content": parts}], "response_format": {"type": "text"}}
    reply = openai.chat.completions.with_raw_response.create(**asked, n=1, logprobs=False, modalities=["text"])
    assert IGNORED not in reply.headers
    assert reply.parse().choices[0].message.content == answer


# What is said to be ignored


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
    assert IGNORED not in client.post("/v1/chat/completions", json=ASKED | {"temperature": None}).headers
    odd = client.post("/v1/chat/completions", json=ASKED | {"a\r\nX-Evil": 1, "x" * 99: 1, "ü": 1, "top_k": 3})
    assert (odd.headers[IGNORED], "X-Evil" in odd.headers) == ("top_k", False)


# What is refused

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
REFUSED: list[tuple[str, dict[str, Any], str, str | None, str]] = [
    # the path, what is added to a request, the parameter and the code of the error, what is said
    ("chat/completions", {"n": 2}, "n", "unsupported_value", "n must be 1"),
    ("chat/completions", {"tools": [FUNCTION]}, "tools", "unsupported_parameter", "tools cannot be called"),
    (
        "chat/completions",
        {"tools": [FUNCTION], "tool_choice": "required"},
        "tools",
        "unsupported_parameter",
        "tools cannot be called",
    ),
    ("chat/completions", {"functions": [{}]}, "functions", "unsupported_parameter", "functions cannot be called"),
    (
        "chat/completions",
        {"response_format": {"type": "json_object"}},
        "response_format",
        "unsupported_value",
        "response_format cannot be 'json_object'",
    ),
    ("chat/completions", {"response_format": SCHEMA}, "response_format", "unsupported_value", "'json_schema'"),
    ("chat/completions", {"logprobs": True}, "logprobs", "unsupported_parameter", "logprobs cannot be given"),
    ("chat/completions", {"modalities": ["text", "audio"]}, "modalities", "unsupported_value", "is text"),
    ("chat/completions", {"max_tokens": 0}, "max_tokens", None, "Expected `int` >= 1"),
    (
        "chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}]},
        "messages[0].content[1].type",
        "unsupported_value",
        "only text can be read",
    ),
    ("responses", {"previous_response_id": "resp_1"}, "previous_response_id", "unsupported_parameter", "is stored"),
    ("responses", {"conversation": "conv_1"}, "conversation", "unsupported_parameter", "input takes earlier"),
    ("responses", {"background": True}, "background", "unsupported_parameter", "background cannot be heeded"),
    ("responses", {"tools": [{"type": "web_search"}]}, "tools", "unsupported_parameter", "tools cannot be called"),
    ("responses", {"text": {"format": SCHEMA}}, "text.format", "unsupported_value", "'json_schema'"),
    ("responses", {"input": []}, "input", None, "the last message must be the user's"),
    ("responses", {"input": " "}, "input", None, "the last message must be the user's"),
    ("responses", {"input": "x" * 4001}, "input", None, "the question is too long"),
    ("responses", {"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", None, "'item_reference'"),
    ("responses", {"model": "gpt-9"}, "model", "model_not_found", "unknown model 'gpt-9' (available: convagent)"),
    ("embeddings", {"model": "minilm"}, "model", "model_not_found", "has no embedding model (serve --embedder"),
]


def test_what_cannot_be_heeded_is_refused(client: httpx.Client) -> None:
    for path, added, param, code, told in REFUSED:
        body = (ASKED if path == "chat/completions" else POSED) | added
        for stream in (False, True):
            reply = client.post(f"/v1/{path}", json=body | {"stream": stream})
            error = reply.json()["error"]
            assert reply.status_code == (404 if code == "model_not_found" else 400)
            assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
            assert told in error["message"]


def test_an_error_repeats_little_of_what_was_sent(client: httpx.Client) -> None:
    for body in (ASKED | {"model": "x" * 9999}, ASKED | {"response_format": {"type": "x" * 9999}}):
        assert len(client.post("/v1/chat/completions", json=body).json()["error"]["message"]) < 600
    assert len(client.get(f"/v1/models/{'x' * 5000}").json()["error"]["message"]) < 600


# Tokens


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
            response = openai.responses.create(**POSED).usage
            assert len(StandIn.asked) == asked
    assert first.prompt_tokens > 0 < first.completion_tokens
    assert first.prompt_tokens_details.cached_tokens == 0
    for usage in (again, last.usage):
        assert usage.prompt_tokens == first.prompt_tokens == usage.prompt_tokens_details.cached_tokens
        assert usage.completion_tokens == first.completion_tokens
        assert usage.total_tokens == first.total_tokens
    assert (response.input_tokens, response.output_tokens) == (first.prompt_tokens, first.completion_tokens)
    assert response.input_tokens_details.cached_tokens == first.prompt_tokens


@pytest.mark.parametrize("limit", [None, 30])
def test_usage_of_a_quoted_answer_is_what_was_asked_and_sent(limit: int | None, openai: Any) -> None:
    earlier = [{"role": "user", "content": "Thanks!"}, {"role": "assistant", "content": "You are welcome."}]
    asked, options = {"model": "convagent", "messages": [*earlier, USER]}, {"include_usage": True}
    whole = openai.chat.completions.create(**asked, max_tokens=limit)
    *_, last = openai.chat.completions.create(**asked, max_tokens=limit, stream=True, stream_options=options)
    response = openai.responses.create(model="convagent", input=[*earlier, USER], max_output_tokens=limit)
    read = sum(response_length(message["content"]) for message in (*earlier, USER))
    written = response_length(whole.choices[0].message.content)
    assert 0 < written <= (limit or written)
    for usage in (whole.usage, last.usage):
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (read, written, read + written)
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (read, written, read + written)


# Responses


def test_a_response_is_the_same_answer(openai: Any, answer: str) -> None:
    completion = openai.chat.completions.create(**ASKED)
    reply = openai.responses.with_raw_response.create(**POSED, instructions="Answer in French.", store=True)
    assert sorted(reply.headers[IGNORED].split(", ")) == ["instructions", "store"]
    response = reply.parse()
    assert (response.output_text, response.status, response.store) == (answer, "completed", False)
    assert response.citations == completion.citations
    check_types("responses.Response", response)
    check_types("chat.ChatCompletion", completion)
    follow_up = "How often do they need water?"
    said = [{"type": "output_text", "text": answer, "annotations": []}]
    items = [USER | {"type": "message"}, {"role": "assistant", "content": said, "type": "message"}]
    items.append({"role": "user", "content": [{"type": "input_text", "text": follow_up}]})
    messages = [USER, {"role": "assistant", "content": answer}, {"role": "user", "content": follow_up}]
    expected = openai.chat.completions.create(model="convagent", messages=messages).choices[0].message.content
    assert openai.responses.create(model="convagent", input=items).output_text == expected


def test_a_response_is_incomplete_where_it_was_cut(openai: Any, answer: str) -> None:
    for stream in (False, True):
        asked = openai.responses.create(**POSED, max_output_tokens=45, stream=stream)
        events = list(asked) if stream else []
        cut = events[-1].response if stream else asked
        assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert answer.startswith(cut.output_text)
        assert response_length(cut.output_text) <= 45
        assert [event.type for event in events[-1:]] == ["response.incomplete"] * stream


def test_a_response_is_streamed_as_the_protocols_events(openai: Any, answer: str) -> None:
    whole = openai.responses.create(**POSED)
    events = list(openai.responses.create(**POSED, stream=True))
    check_types("responses.ResponseStreamEvent", *events)
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 1
    assert "".join(event.delta for event in deltas) == answer
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events if event not in deltas] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[-1].response.output_text == answer
    assert events[-1].response.usage == whole.usage
    with openai.responses.stream(**POSED) as stream:  # the helper that puts the events together again
        assert stream.get_final_response().output_text == answer


# Embeddings


@pytest.fixture(scope="module")
def embedding_server(
    tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex, caches: Path
) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("data")
    with serving(example_index.directory, data, "--model", "none", "--embedder", "minilm") as running:
        yield running


TEXTS = ["Hostas grow in shade.", "Rye bread keeps for a week.", "Plants for dark corners"]


@needs_embedder
def test_embeddings_are_those_of_the_embedding_model(embedding_server: Server, minilm: Embedder) -> None:
    expected = minilm.embed(TEXTS)
    with open_openai(embedding_server) as openai:
        assert [model.id for model in openai.models.list()] == ["convagent", "minilm"]
        assert openai.models.retrieve("minilm").id == "minilm"
        check_types("Model", *openai.models.list())
        reply = openai.embeddings.create(model="minilm", input=TEXTS)  # the client asks for base64
        check_types("CreateEmbeddingResponse", reply)
        assert np.array_equal(np.asarray([row.embedding for row in reply.data], dtype=np.float32), expected)
        assert [row.index for row in reply.data] == [0, 1, 2]
        tokens = sum(minilm.count_tokens(text) for text in TEXTS)
        assert (reply.usage.prompt_tokens, reply.usage.total_tokens, reply.model) == (tokens, tokens, "minilm")
        one = openai.embeddings.create(model="minilm", input=TEXTS[1], encoding_format="float").data
        assert np.array_equal(np.asarray(one[0].embedding, dtype=np.float32), expected[1])
    with embedding_server.open_client() as client:
        raw = {"model": "minilm", "input": TEXTS[0], "encoding_format": "base64", "user": "ana"}
        sent = client.post("/v1/embeddings", json=raw)
        assert sent.headers[IGNORED] == "user"
        decoded = np.frombuffer(base64.b64decode(sent.json()["data"][0]["embedding"]), dtype="<f4")
        assert np.array_equal(decoded, expected[0])
        plain = client.post("/v1/embeddings", json={"model": "minilm", "input": TEXTS[0]})
        assert isinstance(plain.json()["data"][0]["embedding"], list)


NOT_EMBEDDED: list[tuple[dict[str, Any], str, str | None, str]] = [
    ({"model": "convagent"}, "model", "model_not_found", "unknown model 'convagent' (available: minilm)"),
    ({"input": [1, 2, 3]}, "input", "unsupported_value", "tokens of another model mean nothing"),
    ({"input": [[1, 2], [3]]}, "input", "unsupported_value", "check_embedding_ctx_length=False"),
    ({"input": []}, "input", None, "must not be empty"),
    ({"input": ["a", " "]}, "input", None, "must not be empty"),
    ({"input": ["a"] * (MAX_TEXTS + 1)}, "input", None, "at most 256 are taken"),
    ({"input": ["a", "word " * 300]}, "input", "context_length_exceeded", "input[1] has 302 tokens, where minilm"),
    ({"dimensions": 64}, "dimensions", "unsupported_parameter", "a vector has 384 numbers"),
    ({"encoding_format": "hex"}, "encoding_format", None, "'hex'"),
]


@needs_embedder
def test_what_cannot_be_embedded_is_refused(embedding_server: Server) -> None:
    with embedding_server.open_client() as client:
        for added, param, code, told in NOT_EMBEDDED:
            reply = client.post("/v1/embeddings", json={"model": "minilm", "input": "a"} | added)
            error = reply.json()["error"]
            assert reply.status_code == (404 if code == "model_not_found" else 400)
            assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
            assert told in error["message"]


@needs_embedder
def test_texts_that_are_embedded_are_not_kept(embedding_server: Server, minilm: Embedder, caches: Path) -> None:
    text = "A secret that only this test knows."
    with open_openai(embedding_server) as openai:
        openai.embeddings.create(model="minilm", input=text)
    key = blake2b(f"{minilm.digest}\0{text}".encode(), digest_size=16).digest()
    kept = list(caches.rglob("vectors.sqlite"))  # the server's, and those that other tests left
    assert kept
    assert not any(Cache(path).get([key]) for path in kept)


@needs_embedder
def test_embedding_ends_where_nobody_waits(minilm: Embedder) -> None:
    token = CancellationToken()
    assert embed_texts(TEXTS, minilm, token)[0].shape == (3, 384)
    token.cancel()
    with pytest.raises(AnswerCancelledError):
        embed_texts(TEXTS, minilm, token)
