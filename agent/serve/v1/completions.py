"""`/v1/chat/completions`: the agent for clients that speak OpenAI's chat completions.

The earlier messages of a request are the conversation; what comes back is the agent's answer in Markdown, with the
numbers of its sources in the text, and the sources themselves in `citations`, a field of our own. What passages hold of
Markdown is escaped.
"""

import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agent.chat.export import to_markdown_pieces
from agent.chat.store import ChatTurn
from agent.serve.v1.answering import MODEL, Answering, Job, Waiting, count_usage, list_citations, wait_for_result
from agent.serve.v1.decoding import check_tools, decode_request, name_ignored
from agent.serve.v1.errors import RequestError, refuse_field, refuse_value, to_request_error
from agent.serve.v1.messages import RequestMessage, join_messages, name_instructions
from agent.serve.v1.models import check_chat_model
from agent.serve.v1.shortening import AnswerLimits, Shortening, read_stop
from schemas.records import Message

TokenLimit = Annotated[int, msgspec.Meta(ge=1)]


class StreamOptions(msgspec.Struct):
    """What a stream ends with."""

    include_usage: bool = False


class ResponseFormat(msgspec.Struct):
    """The form of an answer."""

    type: str


class CompletionRequest(msgspec.Struct):
    """A request. Other fields that it may have (temperature and so on) have no effect, and the reply says so."""

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

    @property
    def limits(self) -> AnswerLimits:
        asked = [limit for limit in (self.max_tokens, self.max_completion_tokens) if limit is not None]
        return AnswerLimits(read_stop(self.stop), min(asked, default=None))


@dataclass(frozen=True, slots=True)
class Completions:
    """The endpoint."""

    answering: Answering

    def routes(self) -> list[Route]:
        return [Route("/v1/chat/completions", self.complete, methods=["POST"])]

    async def complete(self, request: Request) -> Response:
        """An answer, whole or as server-sent events."""
        parsed, ignored = _read_request(await request.body())
        limits, headers = parsed.limits, name_ignored(ignored)
        messages = join_messages(parsed.messages, "messages")
        job = await self.answering.submit(messages, request.state.user)
        reply = _Reply(f"chatcmpl-{uuid.uuid4().hex}", int(time.time()), messages)
        if parsed.stream:
            usage = parsed.stream_options is not None and parsed.stream_options.include_usage
            events = self._stream_events(reply, job, Shortening(limits), usage=usage)
            return StreamingResponse(events, headers=headers, media_type="text/event-stream")
        turn = await wait_for_result(request, job)
        return JSONResponse(reply.make_completion(turn, limits.shorten(to_markdown_pieces(turn)), job), 200, headers)

    async def _stream_events(
        self, reply: "_Reply", job: Job, shortening: Shortening, *, usage: bool
    ) -> AsyncIterator[str]:
        """An answer sentence by sentence, then its citations. Where the client goes away, the answer is cancelled."""
        try:
            yield _format_event(reply.make_chunk({"role": "assistant", "content": ""}))
            async for text in self.answering.follow(job, shortening):
                if isinstance(text, Waiting):
                    yield text.comment
                elif text:
                    yield _format_event(reply.make_chunk({"content": text}))
            citations = list_citations(job.future.result().answered, shortening)
            yield _format_event(reply.make_chunk({}, _name_end(shortening)) | {"citations": citations})
            if usage:
                yield _format_event(reply.make_usage_chunk(job, shortening))
            yield "data: [DONE]\n\n"
        except Exception as error:
            yield _format_event(to_request_error(error).body)
        finally:
            job.cancel()


def _read_request(body: bytes) -> tuple[CompletionRequest, tuple[str, ...]]:
    """A request that can be answered, and what of it has no effect. Raises `RequestError`."""
    parsed, unknown = decode_request(body, CompletionRequest)
    check_chat_model(parsed.model)
    if parsed.n not in (None, 1):
        raise RequestError(400, "there is one answer: n must be 1", param="n", code="unsupported_value")
    if parsed.logprobs:
        raise refuse_field("logprobs", "logprobs cannot be given: an answer has no probabilities of its tokens")
    if parsed.modalities not in (None, ["text"]):
        raise refuse_value("modalities", 'an answer is text: modalities must be ["text"]')
    check_format(parsed.response_format, "response_format")
    tools = check_tools(msgspec.structs.asdict(parsed))
    return parsed, (*unknown, *tools, *name_instructions(parsed.messages))


def check_format(asked: ResponseFormat | None, field: str) -> None:
    """Raise `RequestError` where another form of answer than text is asked for."""
    if asked is not None and asked.type != "text":
        raise refuse_value(field, f"an answer is text: {field} cannot be {asked.type!r}")


def _name_end(shortening: Shortening) -> Literal["stop", "length"]:
    return "length" if shortening.is_too_long else "stop"


@dataclass(frozen=True, slots=True)
class _Reply:
    """What all parts of one reply share."""

    id: str
    created: int
    asked: Sequence[Message]

    def make_completion(self, turn: ChatTurn, shortening: Shortening, job: Job) -> dict[str, Any]:
        message = {"role": "assistant", "content": shortening.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _name_end(shortening)}
        rest = {"usage": self._show_usage(job, shortening), "citations": list_citations(turn.answered, shortening)}
        return self._make_frame("chat.completion", [choice]) | rest

    def make_chunk(self, delta: Mapping[str, str], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._make_frame("chat.completion.chunk", [choice])

    def make_usage_chunk(self, job: Job, shortening: Shortening) -> dict[str, Any]:
        return self._make_frame("chat.completion.chunk", []) | {"usage": self._show_usage(job, shortening)}

    def _make_frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL, "choices": choices}

    def _show_usage(self, job: Job, shortening: Shortening) -> dict[str, Any]:
        usage = count_usage(job.calls, self.asked, shortening.text)
        return {
            "prompt_tokens": usage.read,
            "completion_tokens": usage.written,
            "total_tokens": usage.read + usage.written,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        }


def _format_event(data: Mapping[str, Any]) -> str:
    return f"data: {msgspec.json.encode(data).decode()}\n\n"
