"""`/v1/chat/completions`: the agent for clients that speak OpenAI's protocol; `/v1/models` names it.

The earlier messages of a request are the conversation; what comes back is the agent's answer in Markdown, with the
numbers of its sources in the text, and the sources themselves in `citations`, a field of our own. What passages hold of
Markdown is escaped. Nothing is stored.
"""

import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.chat.export import to_markdown_pieces
from agent.serve.v1.answering import Answering, Job, SentText, count_usage, follow, list_citations, wait_for_result
from agent.serve.v1.requests import (
    MODEL,
    RequestError,
    RequestMessage,
    check_tools,
    decode_request,
    join_messages,
    name_ignored,
    name_instructions,
    refuse,
    to_request_error,
)
from schemas.records import Message

KEEPALIVE_SECONDS = 10  # after which a waiting client is sent a comment, so that it does not give up
DESCRIBED = {"id": MODEL, "object": "model", "created": 0, "owned_by": "local"}
TokenLimit = Annotated[int, msgspec.Meta(ge=1)]


class StreamOptions(msgspec.Struct):
    """What a stream ends with."""

    include_usage: bool = False


class ResponseFormat(msgspec.Struct):
    """The form of an answer."""

    type: str = "text"


class CompletionRequest(msgspec.Struct):
    """A chat completion. Other fields (temperature and so on) have no effect, and the reply says so."""

    model: str
    messages: list[RequestMessage]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    n: int | None = 1
    response_format: ResponseFormat | None = None
    modalities: list[str] | None = None
    logprobs: bool | None = False
    tools: list[Any] | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None
    function_call: Any = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for."""

    messages: tuple[Message, ...]
    max_tokens: int | None
    is_streamed: bool
    ignored: tuple[str, ...]  # what of the request has no effect
    ends_with_usage: bool = False  # where it is streamed
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat completion, whole or as events."""

    asked: Asked
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")

    def write_whole(self, job: Job, sent: SentText) -> dict[str, Any]:
        message = {"role": "assistant", "content": sent.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _name_end(sent)}
        usage, cited = self._show_usage(job, sent), _cite(job, sent)
        return self._frame("chat.completion", [choice]) | {"usage": usage, "citations": cited}

    async def stream(self, job: Job, sent: SentText) -> AsyncIterator[ServerSentEvent]:
        """An answer sentence by sentence. Where the client goes away, it is cancelled."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for piece in follow(job):
                if text := sent.add(piece):
                    yield self._chunk({"content": text})
            yield self._chunk({}, _name_end(sent), citations=_cite(job, sent))
            if self.asked.ends_with_usage:
                yield _write_event(self._frame("chat.completion.chunk", []) | {"usage": self._show_usage(job, sent)})
            yield ServerSentEvent("[DONE]", sep="\n")
        except Exception as error:
            yield _write_event(to_request_error(error).body)
        finally:
            job.cancel()

    def _chunk(self, delta: Mapping[str, str], finish: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _write_event(self._frame("chat.completion.chunk", [choice]) | more)

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.asked.created, "model": MODEL, "choices": choices}

    def _show_usage(self, job: Job, sent: SentText) -> dict[str, Any]:
        usage = count_usage(job.calls, self.asked.messages, sent.text)
        return {
            "prompt_tokens": usage.read,
            "completion_tokens": usage.written,
            "total_tokens": usage.read + usage.written,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        }


def _write_event(data: Mapping[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(msgspec.json.encode(data).decode(), sep="\n")


def _name_end(sent: SentText) -> str:
    return "length" if sent.is_cut else "stop"


def _cite(job: Job, sent: SentText) -> list[dict[str, Any]]:
    return list_citations(job.future.result().answered, sent.text)


@dataclass(frozen=True, slots=True)
class Conversations:
    """The endpoints."""

    answering: Answering

    def routes(self) -> list[Route]:
        return [
            Route("/v1/chat/completions", self.answer, methods=["POST"]),
            Route("/v1/models", self.list_models),
            Route("/v1/models/{model:path}", self.show_model),
        ]

    async def list_models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [DESCRIBED]})

    async def show_model(self, request: Request) -> Response:
        _check_model(request.path_params["model"])
        return JSONResponse(DESCRIBED)

    async def answer(self, request: Request) -> Response:
        """An answer, whole or as server-sent events."""
        asked, queue = _read_completion(await request.body()), self.answering.queue
        job = await self.answering.submit(asked.messages, request.state.user)
        reply, headers, sent = Reply(asked), name_ignored(asked.ignored), SentText(asked.max_tokens)
        if asked.is_streamed:
            return EventSourceResponse(
                reply.stream(job, sent),
                headers=headers,
                sep="\n",
                ping=KEEPALIVE_SECONDS,
                ping_message_factory=lambda: ServerSentEvent(comment=f"{queue.count_before(job)} before you", sep="\n"),
            )
        for piece in to_markdown_pieces(await wait_for_result(request, job)):
            sent.add(piece)
        return JSONResponse(reply.write_whole(job, sent), 200, headers)


def _read_completion(body: bytes) -> Asked:
    """What a chat completion asks for. Raises `RequestError`."""
    parsed, unknown = decode_request(body, CompletionRequest)
    _check_model(parsed.model)
    if parsed.n not in (None, 1):
        raise refuse("n", "there is one answer: n must be 1")
    if parsed.logprobs:
        told = "logprobs cannot be given: an answer has no probabilities of its tokens"
        raise refuse("logprobs", told, "unsupported_parameter")
    if parsed.modalities not in (None, ["text"]):
        raise refuse("modalities", 'an answer is text: modalities must be ["text"]')
    if parsed.response_format is not None and parsed.response_format.type != "text":
        raise refuse("response_format", f"an answer is text: response_format cannot be {parsed.response_format.type!r}")
    limits = [limit for limit in (parsed.max_tokens, parsed.max_completion_tokens) if limit is not None]
    ignored = (*unknown, *check_tools(msgspec.structs.asdict(parsed)), *name_instructions(parsed.messages))
    messages = join_messages(parsed.messages)
    with_usage = bool(parsed.stream_options and parsed.stream_options.include_usage)
    return Asked(messages, min(limits, default=None), bool(parsed.stream), ignored, with_usage)


def _check_model(name: str) -> None:
    if name != MODEL:
        message = f"unknown model {name!r} (available: {MODEL})"
        raise RequestError(404, message, param="model", code="model_not_found")
