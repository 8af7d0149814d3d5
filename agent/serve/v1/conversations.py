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
    count_tokens,
    cut_into_pieces,
    follow,
    list_citations,
    to_turns,
    wait_for_result,
)
from agent.serve.v1.requests import (
    MODEL,
    TEXT,
    ModelRequest,
    RequestError,
    RequestMessage,
    decode_request,
    join_messages,
    name_ignored,
    to_request_error,
)
from indexes.text.response_length import response_length
from schemas.records import Message, Turn

KEEPALIVE_SECONDS = 10  # after which a waiting client is sent a comment, so that it does not give up
TokenLimit = Annotated[int, msgspec.Meta(ge=1)]


class CompletionRequest(ModelRequest):
    """A chat completion. Other fields (temperature and so on) have no effect, and the reply says so."""

    messages: list[RequestMessage]
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None


class ResponseRequest(ModelRequest):
    """A response. Other fields (temperature and so on) have no effect, and the reply says so."""

    input: str | list[RequestMessage]
    stream: bool | None = False
    max_output_tokens: TokenLimit | None = None


@dataclass(slots=True)
class Reply:
    """What a request asks for, and what is sent: as many whole pieces as fit, counted as the tracks count."""

    messages: tuple[Message, ...]
    max_tokens: int | None
    is_streamed: bool
    ignored: tuple[str, ...]  # what of the request has no effect
    ends_with_usage: bool = False  # of a stream of chat completions
    text: str = ""
    is_cut: bool = False  # so that pieces were left out
    written: int = 0  # events of a response
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def add(self, piece: str) -> str:
        """Take a piece in; what is sent of it: all, or nothing."""
        longer = self.text + piece
        self.is_cut |= self.max_tokens is not None and response_length(longer) > self.max_tokens
        if self.is_cut:
            return ""
        self.text = longer
        return piece

    def cite(self, job: Job) -> list[dict[str, Any]]:
        return list_citations(job.future.result().answered, self.text)


class CompletionReply(Reply):
    """A chat completion."""

    def write_whole(self, job: Job) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._end}
        return self._frame("chat.completion", [choice]) | {"usage": self._show_usage(job), "citations": self.cite(job)}

    def begin(self) -> Iterator[ServerSentEvent]:
        yield self._chunk({"role": "assistant", "content": ""})

    def write_text(self, text: str) -> ServerSentEvent:
        return self._chunk({"content": text})

    def end(self, job: Job) -> Iterator[ServerSentEvent]:
        yield self._chunk({}, self._end, citations=self.cite(job))
        if self.ends_with_usage:
            yield _write_event(self._frame("chat.completion.chunk", []) | {"usage": self._show_usage(job)})
        yield ServerSentEvent("[DONE]", sep="\n")

    def fail(self, error: RequestError) -> ServerSentEvent:
        return _write_event(error.body)

    @property
    def _end(self) -> str:
        return "length" if self.is_cut else "stop"

    def _chunk(self, delta: Mapping[str, str], finish: str | None = None, **more: Any) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _write_event(self._frame("chat.completion.chunk", [choice]) | more)

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        about = {"id": f"chatcmpl-{self.id}", "object": kind, "created": self.created, "model": MODEL}
        return about | {"choices": choices}

    def _show_usage(self, job: Job) -> dict[str, Any]:
        read, written = count_tokens(job.calls)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


class ResponseReply(Reply):
    """A response, whose events are numbered."""

    def write_whole(self, job: Job) -> dict[str, Any]:
        read, written = count_tokens(job.calls)
        status = "incomplete" if self.is_cut else "completed"
        return self._frame(status) | {
            "incomplete_details": {"reason": "max_output_tokens"} if self.is_cut else None,
            "output": [self._message(status, [_make_part(self.text)])],
            "usage": {
                "input_tokens": read,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": read + written,
            },
            "citations": self.cite(job),
        }

    def begin(self) -> Iterator[ServerSentEvent]:
        for kind in ("created", "in_progress"):
            yield self._event(kind, response=self._frame("in_progress"))
        yield self._event("output_item.added", output_index=0, item=self._message("in_progress", []))
        yield self._event("content_part.added", **self._place, part=_make_part(""))

    def write_text(self, text: str) -> ServerSentEvent:
        return self._event("output_text.delta", **self._place, delta=text, logprobs=[])

    def end(self, job: Job) -> Iterator[ServerSentEvent]:
        whole = self.write_whole(job)
        yield self._event("output_text.done", **self._place, text=self.text, logprobs=[])
        yield self._event("content_part.done", **self._place, part=_make_part(self.text))
        yield self._event("output_item.done", output_index=0, item=whole["output"][0])
        yield self._event(whole["status"], response=whole)

    def fail(self, error: RequestError) -> ServerSentEvent:
        told = {"error": {"code": "server_error", "message": str(error)}}
        return self._event("failed", response=self._frame("failed") | told)

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self.id}", "output_index": 0, "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> ServerSentEvent:
        self.written += 1
        kind = f"response.{kind}"
        return _write_event({"type": kind, "sequence_number": self.written - 1} | fields, kind)

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        about = {"type": "message", "id": f"msg_{self.id}", "status": status, "role": "assistant"}
        return about | {"content": content}

    def _frame(self, status: str) -> dict[str, Any]:
        """The object without an answer, with every field that the protocol requires."""
        nothing = "error incomplete_details instructions previous_response_id temperature top_p usage"
        return dict.fromkeys(nothing.split()) | {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "max_output_tokens": self.max_tokens,
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


def _make_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


AnyReply = CompletionReply | ResponseReply


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

    async def _answer(self, read: Callable[[bytes], AnyReply], request: Request) -> Response:
        """An answer, whole or as server-sent events."""
        reply, queue = read(await request.body()), self.queue
        job = await self._submit(reply.messages, request.state.user)
        headers = name_ignored(reply.ignored)
        if reply.is_streamed:
            return EventSourceResponse(
                _stream_events(reply, job),
                headers=headers,
                sep="\n",
                ping=KEEPALIVE_SECONDS,
                ping_message_factory=lambda: ServerSentEvent(comment=f"{queue.count_before(job)} before you", sep="\n"),
            )
        for piece in cut_into_pieces((await wait_for_result(request, job)).answered.response):
            reply.add(piece)
        return JSONResponse(reply.write_whole(job), 200, headers)

    async def _submit(self, messages: tuple[Message, ...], user: str) -> Job:
        """Put the last message in the queue. Raises `BusyError`."""
        assistant, turn = self.assistant, Turn("v1", messages[-1].text)
        turns = to_turns(messages[:-1], assistant.collection, assistant.initial_scope)
        scope = turns[-1].scope if turns else assistant.initial_scope
        statements = await run_in_threadpool(self.store.for_user(user).list_statements)
        return self.queue.submit(lambda observer: assistant.respond(turn, turns, statements, observer, scope), user)


async def _stream_events(reply: AnyReply, job: Job) -> AsyncIterator[ServerSentEvent]:
    """An answer sentence by sentence. Where the client goes away, it is cancelled."""
    try:
        for event in reply.begin():
            yield event
        async for piece in follow(job):
            if text := reply.add(piece):
                yield reply.write_text(text)
        for event in reply.end(job):
            yield event
    except Exception as error:
        yield reply.fail(to_request_error(error))
    finally:
        job.cancel()


def _read_completion(body: bytes) -> CompletionReply:
    """What a chat completion asks for. Raises `RequestError`."""
    asked, unknown = decode_request(body, CompletionRequest, MODEL)
    limits = [limit for limit in (asked.max_tokens, asked.max_completion_tokens) if limit is not None]
    messages, instructions = join_messages(asked.messages, "messages")
    ends_with_usage = bool((asked.stream_options or {}).get("include_usage"))
    limit = min(limits, default=None)
    return CompletionReply(messages, limit, bool(asked.stream), (*unknown, *instructions), ends_with_usage)


def _read_response(body: bytes) -> ResponseReply:
    """What a response is to be. Raises `RequestError`."""
    asked, unknown = decode_request(body, ResponseRequest, MODEL)
    said = [RequestMessage("user", asked.input)] if isinstance(asked.input, str) else asked.input
    messages, instructions = join_messages(said, "input")
    return ResponseReply(messages, asked.max_output_tokens, bool(asked.stream), (*unknown, *instructions))
