"""`/v1/chat/completions` and `/v1/responses`: the agent for clients that speak either of OpenAI's protocols.

The earlier messages of a request are the conversation; what comes back is the agent's answer in Markdown, with the
numbers of its sources in the text, and the sources themselves in `citations`, a field of our own. What passages hold of
Markdown is escaped. Nothing is stored.
"""

import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import msgspec
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.chat.session import Assistant
from agent.chat.store import Store
from agent.serve.request_queue import RequestQueue
from agent.serve.v1.answering import (
    Job,
    SentText,
    count_usage,
    cut_into_pieces,
    follow,
    list_citations,
    to_turns,
    wait_for_result,
)
from agent.serve.v1.requests import (
    INSTRUCTORS,
    MODEL,
    TEXT,
    RequestError,
    RequestMessage,
    decode_request,
    join_messages,
    name_ignored,
    refuse_model,
    to_request_error,
)
from schemas.records import Message, Turn

KEEPALIVE_SECONDS = 10  # after which a waiting client is sent a comment, so that it does not give up
TokenLimit = Annotated[int, msgspec.Meta(ge=1)]


class CompletionRequest(msgspec.Struct):
    """A chat completion. Other fields (temperature and so on) have no effect, and the reply says so."""

    model: str
    messages: list[RequestMessage]
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None


class ResponseRequest(msgspec.Struct):
    """A response. Other fields (temperature and so on) have no effect, and the reply says so."""

    model: str
    input: str | list[RequestMessage]
    stream: bool | None = False
    max_output_tokens: TokenLimit | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What either request asks for."""

    messages: tuple[Message, ...]
    max_tokens: int | None
    is_streamed: bool
    ignored: tuple[str, ...]  # what of the request has no effect
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass(frozen=True, slots=True)
class CompletionReply:
    """A chat completion."""

    asked: Asked
    ends_with_usage: bool  # where it is streamed
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")

    def write_whole(self, job: Job, sent: SentText) -> dict[str, Any]:
        message = {"role": "assistant", "content": sent.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _name_end(sent)}
        usage, cited = self._show_usage(job, sent), _cite(job, sent)
        return self._frame("chat.completion", [choice]) | {"usage": usage, "citations": cited}

    def begin(self) -> Iterator[ServerSentEvent]:
        yield self._chunk({"role": "assistant", "content": ""})

    def write_text(self, text: str) -> ServerSentEvent:
        return self._chunk({"content": text})

    def end(self, job: Job, sent: SentText) -> Iterator[ServerSentEvent]:
        yield self._chunk({}, _name_end(sent), citations=_cite(job, sent))
        if self.ends_with_usage:
            yield _write_event(self._frame("chat.completion.chunk", []) | {"usage": self._show_usage(job, sent)})
        yield ServerSentEvent("[DONE]", sep="\n")

    def fail(self, error: RequestError) -> ServerSentEvent:
        return _write_event(error.body)

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


@dataclass(slots=True)
class ResponseReply:
    """A response, whose events are numbered."""

    asked: Asked
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    message_id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")
    written: int = 0  # events

    def write_whole(self, job: Job, sent: SentText) -> dict[str, Any]:
        usage = count_usage(job.calls, self.asked.messages, sent.text)
        status = "incomplete" if sent.is_cut else "completed"
        return self._frame(status) | {
            "incomplete_details": {"reason": "max_output_tokens"} if sent.is_cut else None,
            "output": [self._message(status, [_make_part(sent.text)])],
            "usage": {
                "input_tokens": usage.read,
                "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
                "output_tokens": usage.written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.read + usage.written,
            },
            "citations": _cite(job, sent),
        }

    def begin(self) -> Iterator[ServerSentEvent]:
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._frame("in_progress"))
        yield self._event("response.output_item.added", output_index=0, item=self._message("in_progress", []))
        yield self._event("response.content_part.added", **self._place, part=_make_part(""))

    def write_text(self, text: str) -> ServerSentEvent:
        return self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])

    def end(self, job: Job, sent: SentText) -> Iterator[ServerSentEvent]:
        whole = self.write_whole(job, sent)
        yield self._event("response.output_text.done", **self._place, text=sent.text, logprobs=[])
        yield self._event("response.content_part.done", **self._place, part=_make_part(sent.text))
        yield self._event("response.output_item.done", output_index=0, item=whole["output"][0])
        yield self._event(f"response.{whole['status']}", response=whole)

    def fail(self, error: RequestError) -> ServerSentEvent:
        told = {"error": {"code": "server_error", "message": str(error)}}
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
        nothing = "error incomplete_details instructions previous_response_id temperature top_p usage"
        return dict.fromkeys(nothing.split()) | {
            "id": self.id,
            "object": "response",
            "created_at": self.asked.created,
            "status": status,
            "max_output_tokens": self.asked.max_tokens,
            "metadata": {},
            "model": MODEL,
            "output": [],
            "parallel_tool_calls": False,
            "store": False,
            "text": {"format": TEXT},
            "tool_choice": "none",
            "tools": [],
        }


def _write_event(data: Mapping[str, Any], kind: str | None = None) -> ServerSentEvent:
    return ServerSentEvent(msgspec.json.encode(data).decode(), event=kind, sep="\n")


def _name_end(sent: SentText) -> str:
    return "length" if sent.is_cut else "stop"


def _cite(job: Job, sent: SentText) -> list[dict[str, Any]]:
    return list_citations(job.future.result().answered, sent.text)


def _make_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


Reply = CompletionReply | ResponseReply


@dataclass(frozen=True, slots=True)
class Conversations:
    """Both endpoints, which differ in how a request is read and a reply is written."""

    assistant: Assistant
    store: Store
    queue: RequestQueue

    def routes(self) -> list[Route]:
        return [
            Route("/v1/chat/completions", partial(self._answer, _read_completion), methods=["POST"]),
            Route("/v1/responses", partial(self._answer, _read_response), methods=["POST"]),
        ]

    async def _answer(self, read: Callable[[bytes], Reply], request: Request) -> Response:
        """An answer, whole or as server-sent events."""
        reply = read(await request.body())
        asked, queue = reply.asked, self.queue
        job = await self._submit(asked.messages, request.state.user)
        headers, sent = name_ignored(asked.ignored), SentText(asked.max_tokens)
        if asked.is_streamed:
            return EventSourceResponse(
                _stream_events(reply, job, sent),
                headers=headers,
                sep="\n",
                ping=KEEPALIVE_SECONDS,
                ping_message_factory=lambda: ServerSentEvent(comment=f"{queue.count_before(job)} before you", sep="\n"),
            )
        for piece in cut_into_pieces((await wait_for_result(request, job)).answered.response):
            sent.add(piece)
        return JSONResponse(reply.write_whole(job, sent), 200, headers)

    async def _submit(self, messages: tuple[Message, ...], user: str) -> Job:
        """Put the last message in the queue. Raises `BusyError`."""
        assistant, turn = self.assistant, Turn("v1", messages[-1].text)
        turns = to_turns(messages[:-1], assistant.collection, assistant.initial_scope)
        scope = turns[-1].scope if turns else assistant.initial_scope
        statements = await run_in_threadpool(self.store.for_user(user).list_statements)
        return self.queue.submit(lambda observer: assistant.respond(turn, turns, statements, observer, scope), user)


async def _stream_events(reply: Reply, job: Job, sent: SentText) -> AsyncIterator[ServerSentEvent]:
    """An answer sentence by sentence. Where the client goes away, it is cancelled."""
    try:
        for event in reply.begin():
            yield event
        async for piece in follow(job):
            if text := sent.add(piece):
                yield reply.write_text(text)
        for event in reply.end(job, sent):
            yield event
    except Exception as error:
        yield reply.fail(to_request_error(error))
    finally:
        job.cancel()


def _read_completion(body: bytes) -> CompletionReply:
    """What a chat completion asks for. Raises `RequestError`."""
    parsed, unknown = decode_request(body, CompletionRequest)
    limits = [limit for limit in (parsed.max_tokens, parsed.max_completion_tokens) if limit is not None]
    asked = _check_request(parsed, parsed.messages, "messages", min(limits, default=None), unknown)
    return CompletionReply(asked, bool((parsed.stream_options or {}).get("include_usage")))


def _read_response(body: bytes) -> ResponseReply:
    """What a response is to be. Raises `RequestError`."""
    parsed, unknown = decode_request(body, ResponseRequest)
    messages = [RequestMessage("user", parsed.input)] if isinstance(parsed.input, str) else parsed.input
    return ResponseReply(_check_request(parsed, messages, "input", parsed.max_output_tokens, unknown))


def _check_request(
    parsed: CompletionRequest | ResponseRequest,
    messages: list[RequestMessage],
    field: str,
    max_tokens: int | None,
    unknown: tuple[str, ...],
) -> Asked:
    """What is asked for. Raises `RequestError` for another model, and what `join_messages` raises."""
    if parsed.model != MODEL:
        raise refuse_model(parsed.model, MODEL)
    instructions = dict.fromkeys(f"{message.role} messages" for message in messages if message.role in INSTRUCTORS)
    return Asked(join_messages(messages, field), max_tokens, bool(parsed.stream), (*unknown, *instructions))
