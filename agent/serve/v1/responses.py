"""`/v1/responses`: the same answers for clients of OpenAI's newer protocol. Nothing is stored."""

import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agent.chat.export import to_markdown_pieces
from agent.serve.v1.answering import MODEL, Answering, Job, Waiting, count_usage, list_citations, wait_for_result
from agent.serve.v1.completions import ResponseFormat, TokenLimit, check_format
from agent.serve.v1.decoding import check_tools, decode_request, name_ignored
from agent.serve.v1.errors import refuse_field, to_request_error
from agent.serve.v1.messages import RequestMessage, join_messages, name_instructions
from agent.serve.v1.models import check_chat_model
from agent.serve.v1.shortening import AnswerLimits, Shortening
from schemas.records import Message


class TextOptions(msgspec.Struct):
    """The form of an answer."""

    format: ResponseFormat | None = None


class ResponseRequest(msgspec.Struct):
    """A request. Other fields that it may have (temperature and so on) have no effect, and the reply says so."""

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

    @property
    def messages(self) -> list[RequestMessage]:
        return [RequestMessage("user", self.input)] if isinstance(self.input, str) else self.input


@dataclass(frozen=True, slots=True)
class Responses:
    """The endpoint."""

    answering: Answering

    def routes(self) -> list[Route]:
        return [Route("/v1/responses", self.respond, methods=["POST"])]

    async def respond(self, request: Request) -> Response:
        """An answer, whole or as server-sent events."""
        parsed, ignored = _read_request(await request.body())
        limits, headers = AnswerLimits(max_tokens=parsed.max_output_tokens), name_ignored(ignored)
        messages = join_messages(parsed.messages, "input")
        job = await self.answering.submit(messages, request.state.user)
        reply = _Reply(int(time.time()), limits, messages)
        if parsed.stream:
            events = self._stream_events(reply, job)
            return StreamingResponse(events, headers=headers, media_type="text/event-stream")
        shortening = limits.shorten(to_markdown_pieces(await wait_for_result(request, job)))
        return JSONResponse(reply.make_whole(job, shortening), 200, headers)

    async def _stream_events(self, reply: "_Reply", job: Job) -> AsyncIterator[str]:
        """The protocol's events, in its order. Where the client goes away, the answer is cancelled."""
        shortening, events = Shortening(reply.limits), _Events()
        place = {"item_id": reply.message_id, "output_index": 0, "content_index": 0}
        try:
            for kind in ("response.created", "response.in_progress"):
                yield events.write(kind, response=reply.make("in_progress"))
            item = reply.make_message("in_progress", None)
            yield events.write("response.output_item.added", output_index=0, item=item)
            yield events.write("response.content_part.added", **place, part=_make_part(""))
            async for text in self.answering.follow(job, shortening):
                if isinstance(text, Waiting):
                    yield text.comment
                elif text:
                    yield events.write("response.output_text.delta", **place, delta=text, logprobs=[])
            whole = reply.make_whole(job, shortening)
            yield events.write("response.output_text.done", **place, text=shortening.text, logprobs=[])
            yield events.write("response.content_part.done", **place, part=_make_part(shortening.text))
            yield events.write("response.output_item.done", output_index=0, item=whole["output"][0])
            yield events.write(f"response.{whole['status']}", response=whole)
        except Exception as error:
            problem = to_request_error(error).body["error"]
            failed = {"error": {"code": "server_error", "message": problem["message"]}}
            yield events.write("response.failed", response=reply.make("failed") | failed)
        finally:
            job.cancel()


def _read_request(body: bytes) -> tuple[ResponseRequest, tuple[str, ...]]:
    """A request that can be answered, and what of it has no effect. Raises `RequestError`."""
    parsed, unknown = decode_request(body, ResponseRequest)
    check_chat_model(parsed.model)
    for name in ("previous_response_id", "conversation", "prompt", "background"):
        if getattr(parsed, name):
            raise refuse_field(name, f"{name} cannot be heeded: nothing is stored here; input takes earlier messages")
    check_format(parsed.text.format if parsed.text else None, "text.format")
    fields = msgspec.structs.asdict(parsed)
    stored = ("store",) if parsed.store else ()
    return parsed, (*unknown, *stored, *check_tools(fields), *name_instructions(parsed.messages))


@dataclass(slots=True)
class _Events:
    """The events of a stream, which are numbered."""

    written: int = 0

    def write(self, kind: str, **fields: Any) -> str:
        data = {"type": kind, "sequence_number": self.written} | fields
        self.written += 1
        return f"event: {kind}\ndata: {msgspec.json.encode(data).decode()}\n\n"


@dataclass(frozen=True, slots=True)
class _Reply:
    """What all parts of one reply share."""

    created: int
    limits: AnswerLimits
    asked: Sequence[Message]
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    message_id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")

    def make(self, status: str) -> dict[str, Any]:
        """The object without an answer."""
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": self.limits.max_tokens,
            "metadata": {},
            "model": MODEL,
            "output": [],
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "usage": None,
        }

    def make_whole(self, job: Job, shortening: Shortening) -> dict[str, Any]:
        """The object with the answer, which is there."""
        status = "incomplete" if shortening.is_too_long else "completed"
        return self.make(status) | {
            "incomplete_details": {"reason": "max_output_tokens"} if shortening.is_too_long else None,
            "output": [self.make_message(status, shortening.text)],
            "usage": self._show_usage(job, shortening),
            "citations": list_citations(job.future.result().answered, shortening),
        }

    def _show_usage(self, job: Job, shortening: Shortening) -> dict[str, Any]:
        usage = count_usage(job.calls, self.asked, shortening.text)
        return {
            "input_tokens": usage.read,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
            "output_tokens": usage.written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.read + usage.written,
        }

    def make_message(self, status: str, text: str | None) -> dict[str, Any]:
        content = [] if text is None else [_make_part(text)]
        return {"type": "message", "id": self.message_id, "status": status, "role": "assistant", "content": content}


def _make_part(text: str) -> Mapping[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
