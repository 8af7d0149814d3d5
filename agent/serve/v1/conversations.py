"""`/v1/chat/completions` and `/v1/responses`: the agent for clients that speak either of OpenAI's protocols.

The earlier messages of a request are the conversation; what comes back is the agent's answer in Markdown, with the
numbers of its sources in the text, and the sources themselves in `citations`, a field of our own. What passages hold of
Markdown is escaped. Nothing is stored.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.chat.export import to_markdown_pieces
from agent.serve.v1.answering import MODEL, Answering, AnswerLimits, Job, Shortening, read_stop, wait_for_result
from agent.serve.v1.replies import CompletionReply, ResponseReply
from agent.serve.v1.requests import (
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

KEEPALIVE_SECONDS = 10  # after which a waiting client is sent a comment, so that it does not give up
Reply = CompletionReply | ResponseReply
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
