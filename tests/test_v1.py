"""`/v1` as OpenAI's client asks it: what is heeded, what is said to be ignored, what is refused."""

import operator
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from agent.serve.v1.endpoints import MAX_TEXTS
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.storage.cache import Cache
from indexes.text.response_length import response_length
from tests.conftest import needs_embedder
from tests.serving import Server, serving
from tests.stand_in import StandIn, standing_in

library, pydantic = pytest.importorskip("openai"), pytest.importorskip("pydantic")

SHADE, FOLLOW_UP = "Tell me about plants for a shady balcony.", "How often do they need water?"
USER = {"role": "user", "content": SHADE}
ASKED: dict[str, Any] = {"model": "convagent", "messages": [USER]}
POSED: dict[str, Any] = {"model": "convagent", "input": SHADE}
IGNORED = "X-Convagent-Ignored"
FUNCTION = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "A", "schema": {"type": "object"}}}
WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


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


def say(openai: Any, *texts: str) -> Any:
    """The reply to the last of these, said in turns."""
    messages = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]
    return openai.chat.completions.create(model="convagent", messages=messages).choices[0].message.content


# What is heeded


def test_an_answer_has_its_citations_and_is_not_kept(openai: Any, client: httpx.Client) -> None:
    assert [model.id for model in openai.models.list()] == ["convagent"]
    kept = client.get("/").text.count('href="/chats/')
    whole = openai.chat.completions.create(**ASKED)
    check_types("chat.ChatCompletion", whole)
    message, first = whole.choices[0].message, whole.citations[0]
    assert (whole.choices[0].finish_reason, "[1]" in message.content) == ("stop", True)
    assert sorted(first) == ["id", "number", "place", "quotes", "title", "url"]
    assert first["number"] == 1
    assert openai.chat.completions.create(**ASKED).choices == whole.choices
    assert client.get("/").text.count('href="/chats/') == kept


def test_earlier_messages_are_the_conversation_and_small_talk_is_none(openai: Any, answer: str) -> None:
    followed = say(openai, SHADE, answer, FOLLOW_UP)
    assert followed != say(openai, FOLLOW_UP)
    assert say(openai, "hi") == "Hello. What would you like to know?"
    small_talk = ("hi", "Hello.", SHADE, answer, "thanks!", "You are welcome.", FOLLOW_UP)
    assert say(openai, *small_talk) == followed


def test_a_stream_says_the_same_sentence_by_sentence(openai: Any) -> None:
    whole = openai.chat.completions.create(**ASKED)
    chunks = list(openai.chat.completions.create(**ASKED, **WITH_USAGE))
    check_types("chat.ChatCompletionChunk", *chunks)
    said = [chunk.choices[0].delta.content for chunk in chunks[:-1] if chunk.choices[0].delta.content]
    assert (len(said) > 1, "".join(said)) == (True, whole.choices[0].message.content)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert (chunks[-2].choices[0].finish_reason, chunks[-2].citations) == ("stop", whole.citations)
    assert (chunks[-1].choices, chunks[-1].usage) == ([], whole.usage)
    unasked = list(openai.chat.completions.create(**ASKED, stream=True))
    assert all(chunk.usage is None for chunk in unasked)


def test_an_answer_has_whole_sentences_of_so_many_tokens(openai: Any, answer: str) -> None:
    """Its sources are quoted as far as they are in it."""
    ends = {"", *(answer[: place + 1] for place, character in enumerate(answer) if character == "]")}
    assert len(ends) > 2
    for limit in (1, 30, 60, response_length(answer) - 1):
        whole = openai.chat.completions.create(**ASKED, max_completion_tokens=limit)
        content = whole.choices[0].message.content
        assert (content in ends, whole.choices[0].finish_reason) == (True, "length")
        assert response_length(content) <= limit
        quotes = [quote.removesuffix(".") for source in whole.citations for quote in source["quotes"]]
        assert [quote for quote in quotes if quote not in content.replace("\\", "")] == []
        assert bool(quotes) == bool(content)
        *chunks, last = openai.chat.completions.create(**ASKED, max_tokens=limit, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == content
        assert (last.choices[0].finish_reason, last.citations) == ("length", whole.citations)
    enough = openai.chat.completions.create(**ASKED, max_tokens=response_length(answer)).choices[0]
    assert (enough.message.content, enough.finish_reason) == (answer, "stop")


# What is said to be ignored


def test_a_header_names_what_has_no_effect(openai: Any, answer: str, client: httpx.Client) -> None:
    instructed = ASKED | {"messages": [{"role": "developer", "content": "Answer in French."}, USER]}
    sampled = {"temperature": 0, "top_p": 0.5, "seed": 7, "presence_penalty": 1.0, "stop": ["shade"]}
    for stream in (False, True):
        reply = openai.chat.completions.with_raw_response.create(**instructed, **sampled, stream=stream)
        named = reply.headers[IGNORED].split(", ")
        assert sorted(named) == ["developer messages", "presence_penalty", "seed", "stop", "temperature", "top_p"]
    parts = [{"type": "text", "text": text} for text in ("Tell me about plants", "for a shady balcony.")]
    asked = ASKED | {"messages": [{"role": "user", "content": parts}], "response_format": {"type": "text"}}
    heeded = {"n": 1, "logprobs": False, "modalities": ["text"], "tools": []}
    reply = openai.chat.completions.with_raw_response.create(**asked, **heeded)
    assert (IGNORED in reply.headers, reply.parse().choices[0].message.content) == (False, answer)
    assert IGNORED not in client.post("/v1/chat/completions", json=ASKED | {"temperature": None}).headers
    odd = client.post("/v1/chat/completions", json=ASKED | {"a\r\nX-Evil": 1, "x" * 99: 1, "ü": 1, "top_k": 3})
    assert (odd.headers[IGNORED], "X-Evil" in odd.headers) == ("top_k", False)


# What is refused

WHAT = {"type": "text", "text": "What is it?"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
CHAT, RESPONSES, EMBEDDINGS = "chat/completions", "responses", "embeddings"
VALUE, MODEL = "unsupported_value", "model_not_found"
REFUSED: list[tuple[str, dict[str, Any], str, str | None, str]] = [
    # the path, what is added to a request, the parameter and the code of the error, what is said
    (CHAT, {"model": None}, "model", None, "Expected `str`, got `null`"),
    (CHAT, {"model": "gpt-9"}, "model", MODEL, "unknown model 'gpt-9' (available: convagent)"),
    (CHAT, {"messages": []}, "messages", None, "the last message must be the user's"),
    (CHAT, {"messages": [USER | {"content": 7}]}, "messages[0].content", None, "Expected `str | array`"),
    (CHAT, {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", None, "'tool'"),
    (CHAT, {"messages": [USER | {"content": [WHAT, IMAGE]}]}, "messages[0].content[1].type", None, "'image_url'"),
    (CHAT, {"max_tokens": 0}, "max_tokens", None, "Expected `int` >= 1"),
    (CHAT, {"n": 2}, "n", VALUE, "there is one answer"),
    (CHAT, {"tools": [FUNCTION]}, "tools", VALUE, "convagent only searches its passages"),
    (CHAT, {"response_format": SCHEMA}, "response_format", VALUE, "an answer is text"),
    (CHAT, {"logprobs": True}, "logprobs", VALUE, "has no probabilities"),
    (CHAT, {"modalities": ["text", "audio"]}, "modalities", VALUE, "an answer is text"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id", VALUE, "nothing is stored here"),
    (RESPONSES, {"conversation": "conv_1"}, "conversation", VALUE, "the request holds all earlier messages"),
    (RESPONSES, {"tools": [{"type": "web_search"}]}, "tools", VALUE, "convagent only searches"),
    (RESPONSES, {"text": {"format": SCHEMA}}, "text.format", VALUE, "an answer is text"),
    (RESPONSES, {"input": " "}, "input", None, "the last message must be the user's"),
    (RESPONSES, {"input": "x" * 4001}, "input", None, "the question is too long"),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", None, "'item_reference'"),
    (EMBEDDINGS, {"model": "minilm"}, "model", MODEL, "has no embedding model (serve --embedder"),
]
NOT_EMBEDDED: list[tuple[str, dict[str, Any], str, str | None, str]] = [
    (EMBEDDINGS, {"model": "convagent"}, "model", MODEL, "unknown model 'convagent' (available: minilm)"),
    (EMBEDDINGS, {"input": [1, 2, 3]}, "input[0]", None, "Expected `str`, got `int`"),
    (EMBEDDINGS, {"input": []}, "input", None, "length >= 1"),
    (EMBEDDINGS, {"input": ["a", " "]}, "input[1]", None, "Expected `str` matching"),
    (EMBEDDINGS, {"input": ["a"] * (MAX_TEXTS + 1)}, "input", None, "length <= 256"),
    (EMBEDDINGS, {"input": ["a", "word " * 300]}, "input", "context_length_exceeded", "input[1] has 302 tokens"),
    (EMBEDDINGS, {"dimensions": 64}, "dimensions", VALUE, "as many numbers as the model makes"),
    (EMBEDDINGS, {"encoding_format": "hex"}, "encoding_format", None, "'hex'"),
]
BODIES = {CHAT: ASKED, RESPONSES: POSED, EMBEDDINGS: {"model": "minilm", "input": "a"}}


def check_refused(client: httpx.Client, cases: list[tuple[str, dict[str, Any], str, str | None, str]]) -> None:
    for path, added, param, code, told in cases:
        for stream in ({}, {"stream": True}):
            reply = client.post(f"/v1/{path}", json=BODIES[path] | stream | added)
            error = reply.json()["error"]
            assert reply.status_code == (404 if code == MODEL else 400)
            assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
            assert told in error["message"]


def test_what_cannot_be_heeded_is_refused(client: httpx.Client) -> None:
    check_refused(client, REFUSED)
    for body, param in ((b"{oops", None), (b"[]", None), (b"{}", "model")):
        assert client.post("/v1/chat/completions", content=body).json()["error"]["param"] == param
    for reply, status in ((client.get("/v1/chat/completions"), 405), (client.get("/v1/nothing"), 404)):
        assert (reply.status_code, reply.json()["error"]["type"]) == (status, "invalid_request_error")
    for long in ({"model": "x" * 9999}, {"messages": [{"role": "x" * 9999, "content": ""}]}):  # little is repeated
        assert len(client.post("/v1/chat/completions", json=ASKED | long).json()["error"]["message"]) < 600


# Tokens


def test_usage_counts_what_a_reply_from_the_cache_had_taken(
    tmp_path: Path, example_index: PassageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    with standing_in() as address:
        arguments = ("--model", f"{address}#big", "--embedder", "none", "--incognito")
        with serving(example_index.directory, tmp_path, *arguments) as running, open_openai(running) as openai:
            first = openai.chat.completions.create(**ASKED).usage
            asked = len(StandIn.asked)
            again = openai.chat.completions.create(**ASKED).usage
            *_, last = openai.chat.completions.create(**ASKED, **WITH_USAGE)
            response = openai.responses.create(**POSED).usage
            assert len(StandIn.asked) == asked
    taken = (first.prompt_tokens, first.completion_tokens)
    assert min(taken) > 0
    for usage in (again, last.usage):
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (*taken, sum(taken))
    assert (response.input_tokens, response.output_tokens) == taken


# Responses


def test_a_response_is_the_same_answer(openai: Any, answer: str) -> None:
    reply = openai.responses.with_raw_response.create(**POSED, instructions="Answer in French.", store=True)
    assert sorted(reply.headers[IGNORED].split(", ")) == ["instructions", "store"]
    response = reply.parse()
    check_types("responses.Response", response)
    assert (response.output_text, response.status, response.store) == (answer, "completed", False)
    assert response.citations == openai.chat.completions.create(**ASKED).citations
    said = [{"type": "output_text", "text": answer, "annotations": []}]
    items = [USER | {"type": "message"}, {"role": "assistant", "content": said, "type": "message"}]
    items.append({"role": "user", "content": [{"type": "input_text", "text": FOLLOW_UP}]})
    followed = openai.responses.create(model="convagent", input=items).output_text
    assert followed == say(openai, SHADE, answer, FOLLOW_UP)


def test_a_response_is_incomplete_where_it_was_cut(openai: Any, answer: str) -> None:
    *_, last = openai.responses.create(**POSED, max_output_tokens=45, stream=True)
    assert last.type == "response.incomplete"
    for cut in (last.response, openai.responses.create(**POSED, max_output_tokens=45)):
        assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert answer.startswith(cut.output_text)
        assert response_length(cut.output_text) <= 45


EVENTS = "created in_progress output_item.added content_part.added output_text.delta "
EVENTS += "output_text.done content_part.done output_item.done completed"


def test_a_response_is_streamed_as_the_protocols_events(openai: Any, answer: str) -> None:
    events = list(openai.responses.create(**POSED, stream=True))
    check_types("responses.ResponseStreamEvent", *events)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert (len(deltas) > 1, "".join(deltas)) == (True, answer)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert list(dict.fromkeys(event.type for event in events)) == [f"response.{name}" for name in EVENTS.split()]
    assert events[-1].response.output_text == answer
    assert events[-1].response.usage == openai.responses.create(**POSED).usage
    with openai.responses.stream(**POSED) as stream:  # the helper that puts the events together again
        assert stream.get_final_response().output_text == answer


# Embeddings


TEXTS = ["Hostas grow in shade.", "Rye bread keeps for a week.", "A secret that only this test knows."]


@needs_embedder
def test_embeddings_are_those_of_the_embedding_model_and_kept_nowhere(
    tmp_path: Path, example_index: PassageIndex, minilm: Embedder, caches: Path
) -> None:
    with (
        serving(example_index.directory, tmp_path, "--model", "none", "--embedder", "minilm") as running,
        open_openai(running) as openai,
        running.open_client() as client,
    ):
        assert [model.id for model in openai.models.list()] == ["convagent", "minilm"]
        check_types("Model", *openai.models.list())
        reply = openai.embeddings.create(model="minilm", input=TEXTS)  # the client asks for base64
        check_types("CreateEmbeddingResponse", reply)
        one = openai.embeddings.create(model="minilm", input=TEXTS[1], encoding_format="float").data
        raw = client.post("/v1/embeddings", json={"model": "minilm", "input": "a", "user": "ana"})
        check_refused(client, NOT_EMBEDDED)
    for text in TEXTS:
        key = blake2b(f"{minilm.digest}\0{text}".encode(), digest_size=16).digest()
        kept = list(caches.rglob("vectors.sqlite"))  # the server's, and those that other tests left
        assert (bool(kept), any(Cache(path).get([key]) for path in kept)) == (True, False)
    expected = minilm.embed(TEXTS)
    assert np.array_equal(np.asarray([row.embedding for row in reply.data], dtype=np.float32), expected)
    assert [row.index for row in reply.data] == [0, 1, 2]
    tokens = sum(minilm.count_tokens(text) for text in TEXTS)
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens, reply.model) == (tokens, tokens, "minilm")
    assert np.array_equal(np.asarray(one[0].embedding, dtype=np.float32), expected[1])
    assert raw.headers[IGNORED] == "user"
