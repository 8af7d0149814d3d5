"""`/v1`: the agent for clients that speak OpenAI's chat completions. Nothing of a request is kept.

The earlier messages of a request are the conversation; what comes back is the agent's answer in Markdown, with the
numbers of its sources in the text, and the sources themselves in `citations`, a field of our own. What passages hold of
Markdown is escaped.
"""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agent.chat.citations import cited_sources
from agent.chat.export import mark_in_markdown, separate_pieces, to_markdown_pieces
from agent.chat.session import Assistant, check_utterance
from agent.chat.store import ChatTurn, Store
from agent.serve.earlier_messages import to_turns
from agent.serve.request_queue import RETRY_SECONDS, BusyError, QueuedQuestion, RequestQueue
from schemas.errors import ConvagentError, UsageError
from schemas.records import Message, Turn, TurnResult

MODEL = "convagent"
KEEPALIVE_SECONDS = 10.0  # after which a waiting client is sent a comment, so that it does not give up
POLL_SECONDS = 0.1  # after which it is looked for more of an answer that is being written
log = logging.getLogger("convagent")


class ContentPart(msgspec.Struct):
    """A piece of a message's content."""

    type: Literal["text"]
    text: str


class RequestMessage(msgspec.Struct):
    """A message of a request."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ContentPart]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


class StreamOptions(msgspec.Struct):
    """What a stream ends with."""

    include_usage: bool = False


class CompletionRequest(msgspec.Struct):
    """A request. Other fields that it may have (temperature, max_tokens and so on) have no effect."""

    model: str
    messages: list[RequestMessage]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None


class RequestError(Exception):
    """A request that cannot be answered, in OpenAI's form."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True, slots=True)
class Completions:
    """The endpoints."""

    assistant: Assistant
    store: Store
    queue: RequestQueue

    def routes(self) -> list[Route]:
        return [
            Route("/v1/models", self.list_models),
            Route("/v1/models/{model}", self.show_model),
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
        ]

    async def list_models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_MODEL]})

    async def show_model(self, request: Request) -> Response:
        _check_model(request.path_params["model"])
        return JSONResponse(_MODEL)

    async def complete(self, request: Request) -> Response:
        """An answer, whole or as server-sent events."""
        parsed, user = _parse_request(await request.body()), request.state.user
        *history, last = _join_messages(parsed.messages)
        turn, begin = Turn("v1", check_utterance(last.text)), self.assistant.initial_scope
        turns = to_turns(history, self.assistant.collection, begin)
        scope = turns[-1].scope if turns else begin
        statements = await run_in_threadpool(self.store.for_user(user).list_statements)
        job = self.queue.submit(lambda observer: self.assistant.respond(turn, turns, statements, observer, scope), user)
        reply = _Reply(f"chatcmpl-{uuid.uuid4().hex}", int(time.time()))
        if parsed.stream:
            usage = parsed.stream_options is not None and parsed.stream_options.include_usage
            return StreamingResponse(self._stream_events(reply, job, usage=usage), media_type="text/event-stream")
        return JSONResponse(reply.make_completion(await _wait_for_answer(request, job), job))

    async def _stream_events(
        self, reply: "_Reply", job: QueuedQuestion[ChatTurn], *, usage: bool
    ) -> AsyncIterator[str]:
        """An answer sentence by sentence, then its citations. Where the client goes away, the answer is cancelled.

        What is written is sent as soon as it was checked. All other answers are there at once.
        """
        try:
            yield _format_event(reply.make_chunk({"role": "assistant", "content": ""}))
            sent = 0
            async for pieces in _follow_answer(job):
                for piece in pieces[sent:]:
                    yield _format_event(reply.make_chunk({"content": piece}))
                if not pieces[sent:]:
                    yield f": {self.queue.count_before(job)} before you\n\n"
                sent = len(pieces)
            turn = job.future.result()
            for piece in to_markdown_pieces(turn)[sent:]:
                yield _format_event(reply.make_chunk({"content": piece}))
            yield _format_event(reply.make_chunk({}, "stop") | {"citations": _list_citations(turn.answered)})
            if usage:
                yield _format_event(reply.make_usage_chunk(job))
            yield "data: [DONE]\n\n"
        except Exception as error:
            yield _format_event(_to_request_error(error).body)
        finally:
            job.cancel()


_MODEL = {"id": MODEL, "object": "model", "created": 0, "owned_by": "local"}


def error_response(_request: Request, error: Exception) -> Response:
    """An error in OpenAI's form."""
    problem = _to_request_error(error)
    headers = {"Retry-After": str(RETRY_SECONDS)} if isinstance(error, BusyError) else None
    return JSONResponse(problem.body, problem.status, headers)


async def _wait_for_answer(request: Request, job: QueuedQuestion[ChatTurn]) -> ChatTurn:
    """The answer; it is cancelled where the client goes away first (`ClientDisconnect`). Raises what it raised."""
    leaving, answer = asyncio.ensure_future(_wait_for_disconnect(request)), asyncio.wrap_future(job.future)
    try:
        await asyncio.wait((answer, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        leaving.cancel()
        answer.cancel()  # nobody hears what it raises from now on
        job.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _to_request_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, HTTPException):
        return RequestError(error.status_code, error.detail)
    if isinstance(error, ClientDisconnect):
        return RequestError(499, "the client went away")
    if isinstance(error, UsageError):
        return RequestError(400, error.what, param="messages")
    if isinstance(error, BusyError):
        return RequestError(503, str(error), code="busy")
    if isinstance(error, ConvagentError):
        return RequestError(500, str(error))
    log.error("/v1 failed", exc_info=error)
    return RequestError(500, f"convagent failed ({type(error).__name__})")


def _parse_request(body: bytes) -> CompletionRequest:
    """A request that can be answered. Raises `RequestError`."""
    try:
        parsed = msgspec.json.decode(body, type=CompletionRequest)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise RequestError(400, str(error), param=path.strip(".`") or _missing_field(what)) from error
    except (ValueError, RecursionError) as error:  # of msgspec too; deep nesting, no UTF-8, numbers without end
        raise RequestError(400, f"the request is not JSON ({error})") from error
    _check_model(parsed.model)
    if parsed.n not in (None, 1):
        raise RequestError(400, "there is one answer: n must be 1", param="n")
    for name in ("tools", "functions"):
        if getattr(parsed, name):
            raise RequestError(400, f"{name} cannot be called: convagent only searches its passages", param=name)
    return parsed


def _missing_field(what: str) -> str | None:
    found = re.search(r"field `(\w+)`", what)
    return found[1] if found else None


def _check_model(name: str) -> None:
    if name != MODEL:
        raise RequestError(404, f"unknown model {name!r} (available: {MODEL})", param="model", code="model_not_found")


def _join_messages(messages: Sequence[RequestMessage]) -> tuple[Message, ...]:
    """What was said: without instructions, and consecutive messages of one side joined."""
    spoken = [message for message in messages if message.role in ("user", "assistant") and message.text.strip()]
    if not spoken or messages[-1] is not spoken[-1] or spoken[-1].role != "user":
        raise RequestError(400, "the last message must be the user's, and not empty", param="messages")
    return tuple(
        Message("user" if role == "user" else "assistant", "\n".join(message.text.strip() for message in run))
        for role, run in groupby(spoken, lambda message: message.role)
    )


@dataclass(frozen=True, slots=True)
class _Reply:
    """What all parts of one reply share."""

    id: str
    created: int

    def make_completion(self, turn: ChatTurn, job: QueuedQuestion[ChatTurn]) -> dict[str, Any]:
        message = {"role": "assistant", "content": "".join(to_markdown_pieces(turn)), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        rest = {"usage": _count_tokens(job), "citations": _list_citations(turn.answered)}
        return self._make_frame("chat.completion", [choice]) | rest

    def make_chunk(self, delta: Mapping[str, str], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._make_frame("chat.completion.chunk", [choice])

    def make_usage_chunk(self, job: QueuedQuestion[ChatTurn]) -> dict[str, Any]:
        return self._make_frame("chat.completion.chunk", []) | {"usage": _count_tokens(job)}

    def _make_frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL, "choices": choices}


def _count_tokens(job: QueuedQuestion[ChatTurn]) -> dict[str, int]:
    """What the language model read and wrote for this answer, all its prompts together."""
    read = sum(call.tokens_read for call in job.calls)
    written = sum(call.tokens_written for call in job.calls)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _list_citations(answered: TurnResult) -> list[dict[str, Any]]:
    """The sources of an answer; none where it repeats an earlier one, whose numbers it has."""
    if not answered.passages:
        return []
    return [
        {
            "number": source.number,
            "id": source.passage.id,
            "title": source.passage.title,
            "url": source.passage.url,
            "quotes": source.quotes,
        }
        for source in cited_sources(answered)
    ]


async def _follow_answer(job: QueuedQuestion[ChatTurn]) -> AsyncIterator[list[str]]:
    """The pieces of an answer so far, each time that there are more, and every few seconds, until it is done.

    Raises what the answer raised.
    """
    waiting = asyncio.wrap_future(job.future)
    last, since = list[str](), time.monotonic()
    try:
        while not (await asyncio.wait([waiting], timeout=POLL_SECONDS))[0]:
            pieces = separate_pieces(mark_in_markdown(job.response))
            if pieces != last or time.monotonic() - since >= KEEPALIVE_SECONDS:
                last, since = pieces, time.monotonic()
                yield pieces
        waiting.result()
    finally:
        waiting.cancel()  # nobody hears what it raises from now on


def _format_event(data: Mapping[str, Any]) -> str:
    return f"data: {msgspec.json.encode(data).decode()}\n\n"
