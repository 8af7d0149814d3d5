"""`/v1/chat/completions` and `/v1/responses`: the agent for clients that speak either of OpenAI's protocols.

The earlier messages of a request are the conversation; what comes back is the agent's answer in Markdown, with the
numbers of its sources in the text, and the sources themselves in `citations`, a field of our own. What passages hold of
Markdown is escaped. Nothing is stored.
"""

import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.chat.export import to_markdown_pieces
from agent.serve.v1.answering import (
    MODEL,
    Answering,
    AnswerLimits,
    Job,
    Shortening,
    count_usage,
    list_citations,
    read_stop,
    wait_for_result,
)
from agent.serve.v1.requests import (
    RequestError,
    RequestMessage,
    check_tools,
    decode_request,
    join_messages,
    name_ignored,
    name_instructions,
    refuse_field,
    refuse_model,
    refuse_value,
    to_request_error,
)
from schemas.records import Message

KEEPALIVE_SECONDS = 10  # after which a waiting client is sent a comment, so that it does not give up
TokenLimit = Annotated[int, msgspec.Meta(ge=1)]


class StreamOptions(msgspec.Struct):
    """What a stream ends with."""

    include_usage: bool = False


class ResponseFormat(msgspec.Struct):
    """The form of an answer."""

    type: str


class TextOptions(msgspec.Struct):
    """The form of a response's text."""

    format: ResponseFormat | None = None


class CompletionRequest(msgspec.Struct):
    """A chat completion. Other fields (temperature and so on) have no effect, and the reply says so."""

    model: str
    messages: list[RequestMessage]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
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


class ResponseRequest(msgspec.Struct):
    """A response. Other fields (temperature and so on) have no effect, and the reply says so."""

    model: str
    input: str | list[RequestMessage]
    stream: bool | None = False
    store: bool | None = None
    max_output_tokens: TokenLimit | None = None
    text: TextOptions | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    previous_response_id: str | None = None
    conversation: Any = None
    prompt: Any = None
    background: bool | None = False


@dataclass(frozen=True, slots=True)
class CompletionReply:
    """A chat completion."""

    limits: AnswerLimits
    asked: tuple[Message, ...]
    ends_with_usage: bool = False  # where it is streamed
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def write_whole(self, job: Job, shortening: Shortening) -> dict[str, Any]:
        message = {"role": "assistant", "content": shortening.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _name_end(shortening)}
        return self._frame(
            "chat.completion", [choice], usage=self._show_usage(job, shortening), citations=_cite(job, shortening)
        )

    def begin(self) -> Iterator[ServerSentEvent]:
        yield self._chunk({"role": "assistant", "content": ""})

    def write_text(self, text: str) -> ServerSentEvent:
        return self._chunk({"content": text})

    def end(self, job: Job, shortening: Shortening) -> Iterator[ServerSentEvent]:
        yield self._chunk({}, _name_end(shortening), citations=_cite(job, shortening))
        if self.ends_with_usage:
            yield _write_event(self._frame("chat.completion.chunk", [], usage=self._show_usage(job, shortening)))
        yield ServerSentEvent("[DONE]", sep="\n")

    def fail(self, error: RequestError) -> ServerSentEvent:
        return _write_event(error.body)

    def _chunk(self, delta: Mapping[str, str], finish: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _write_event(self._frame("chat.completion.chunk", [choice], **more))

    def _frame(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        frame = {"id": self.id, "object": kind, "created": self.created, "model": MODEL, "choices": choices}
        return frame | more

    def _show_usage(self, job: Job, shortening: Shortening) -> dict[str, Any]:
        usage = count_usage(job.calls, self.asked, shortening.text)
        return {
            "prompt_tokens": usage.read,
            "completion_tokens": usage.written,
            "total_tokens": usage.read + usage.written,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        }


@dataclass(slots=True)
class ResponseReply:
    """A response, whose events are numbered."""

    limits: AnswerLimits
    asked: tuple[Message, ...]
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    message_id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    written: int = 0  # events

    def write_whole(self, job: Job, shortening: Shortening) -> dict[str, Any]:
        is_cut = shortening.is_too_long
        status, usage = "incomplete" if is_cut else "completed", count_usage(job.calls, self.asked, shortening.text)
        return self._frame(status) | {
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": [self._message(status, [_make_part(shortening.text)])],
            "usage": {
                "input_tokens": usage.read,
                "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
                "output_tokens": usage.written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.read + usage.written,
            },
            "citations": _cite(job, shortening),
        }

    def begin(self) -> Iterator[ServerSentEvent]:
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._frame("in_progress"))
        yield self._event("response.output_item.added", output_index=0, item=self._message("in_progress", []))
        yield self._event("response.content_part.added", **self._place, part=_make_part(""))

    def write_text(self, text: str) -> ServerSentEvent:
        return self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])

    def end(self, job: Job, shortening: Shortening) -> Iterator[ServerSentEvent]:
        whole = self.write_whole(job, shortening)
        yield self._event("response.output_text.done", **self._place, text=shortening.text, logprobs=[])
        yield self._event("response.content_part.done", **self._place, part=_make_part(shortening.text))
        yield self._event("response.output_item.done", output_index=0, item=whole["output"][0])
        yield self._event(f"response.{whole['status']}", response=whole)

    def fail(self, error: RequestError) -> ServerSentEvent:
        told = {"error": {"code": "server_error", "message": error.body["error"]["message"]}}
        return self._event("response.failed", response=self._frame("failed") | told)

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": self.message_id, "output_index": 0, "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> ServerSentEvent:
        self.written += 1
        return _write_event({"type": kind, "sequence_number": self.written - 1} | fields, kind)

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {"type": "message", "id": self.message_id, "status": status, "role": "assistant", "content": content}

    def _frame(self, status: str) -> dict[str, Any]:
        """The object without an answer, with every field that the protocol requires."""
        nothing = (
            "error",
            "incomplete_details",
            "instructions",
            "previous_response_id",
            "temperature",
            "top_p",
            "usage",
        )
        return dict.fromkeys(nothing) | {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "max_output_tokens": self.limits.max_tokens,
            "metadata": {},
            "model": MODEL,
            "output": [],
            "parallel_tool_calls": False,
            "store": False,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
        }


def _write_event(data: Mapping[str, Any], kind: str | None = None) -> ServerSentEvent:
    return ServerSentEvent(msgspec.json.encode(data).decode(), event=kind, sep="\n")


def _name_end(shortening: Shortening) -> str:
    return "length" if shortening.is_too_long else "stop"


def _cite(job: Job, shortening: Shortening) -> list[dict[str, Any]]:
    return list_citations(job.future.result().answered, shortening)


def _make_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


Reply = CompletionReply | ResponseReply


@dataclass(frozen=True, slots=True)
class Conversations:
    """Both endpoints, which differ in how a request is read and a reply is written."""

    answering: Answering

    def routes(self) -> list[Route]:
        return [
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
            Route("/v1/responses", self.respond, methods=["POST"]),
        ]

    async def complete(self, request: Request) -> Response:
        return await self._answer(request, *_read_completion(await request.body()))

    async def respond(self, request: Request) -> Response:
        return await self._answer(request, *_read_response(await request.body()))

    async def _answer(self, request: Request, reply: Reply, is_streamed: bool, ignored: tuple[str, ...]) -> Response:
        """An answer, whole or as server-sent events."""
        headers, queue = name_ignored(ignored), self.answering.queue
        job = await self.answering.submit(reply.asked, request.state.user)
        if is_streamed:
            return EventSourceResponse(
                self._stream_events(reply, job),
                headers=headers,
                sep="\n",
                ping=KEEPALIVE_SECONDS,
                ping_message_factory=lambda: ServerSentEvent(comment=f"{queue.count_before(job)} before you", sep="\n"),
            )
        turn = await wait_for_result(request, job)
        return JSONResponse(reply.write_whole(job, reply.limits.shorten(to_markdown_pieces(turn))), 200, headers)

    async def _stream_events(self, reply: Reply, job: Job) -> AsyncIterator[ServerSentEvent]:
        """An answer sentence by sentence. Where the client goes away, it is cancelled."""
        shortening = Shortening(reply.limits)
        try:
            for event in reply.begin():
                yield event
            async for text in self.answering.follow(job, shortening):
                if text:
                    yield reply.write_text(text)
            for event in reply.end(job, shortening):
                yield event
        except Exception as error:
            yield reply.fail(to_request_error(error))
        finally:
            job.cancel()


def _read_completion(body: bytes) -> tuple[CompletionReply, bool, tuple[str, ...]]:
    """The reply to make, whether it is streamed, and what has no effect. Raises `RequestError`."""
    parsed, unknown = decode_request(body, CompletionRequest)
    _check_model(parsed.model)
    if parsed.n not in (None, 1):
        raise refuse_value("n", "there is one answer: n must be 1")
    if parsed.logprobs:
        raise refuse_field("logprobs", "logprobs cannot be given: an answer has no probabilities of its tokens")
    if parsed.modalities not in (None, ["text"]):
        raise refuse_value("modalities", 'an answer is text: modalities must be ["text"]')
    _check_format(parsed.response_format, "response_format")
    asked = [limit for limit in (parsed.max_tokens, parsed.max_completion_tokens) if limit is not None]
    limits = AnswerLimits(read_stop(parsed.stop), min(asked, default=None))
    ignored = (*unknown, *check_tools(msgspec.structs.asdict(parsed)), *name_instructions(parsed.messages))
    options = parsed.stream_options or StreamOptions()
    reply = CompletionReply(limits, join_messages(parsed.messages, "messages"), ends_with_usage=options.include_usage)
    return reply, bool(parsed.stream), ignored


def _read_response(body: bytes) -> tuple[ResponseReply, bool, tuple[str, ...]]:
    """The reply to make, whether it is streamed, and what has no effect. Raises `RequestError`."""
    parsed, unknown = decode_request(body, ResponseRequest)
    _check_model(parsed.model)
    for name in ("previous_response_id", "conversation", "prompt", "background"):
        if getattr(parsed, name):
            raise refuse_field(name, f"{name} cannot be heeded: nothing is stored here; input takes earlier messages")
    _check_format(parsed.text.format if parsed.text else None, "text.format")
    messages = [RequestMessage("user", parsed.input)] if isinstance(parsed.input, str) else parsed.input
    stored = ("store",) if parsed.store else ()
    ignored = (*unknown, *stored, *check_tools(msgspec.structs.asdict(parsed)), *name_instructions(messages))
    reply = ResponseReply(AnswerLimits(max_tokens=parsed.max_output_tokens), join_messages(messages, "input"))
    return reply, bool(parsed.stream), ignored


def _check_model(name: str) -> None:
    if name != MODEL:
        raise refuse_model(name, MODEL)


def _check_format(asked: ResponseFormat | None, field: str) -> None:
    if asked is not None and asked.type != "text":
        raise refuse_value(field, f"an answer is text: {field} cannot be {asked.type!r}")
