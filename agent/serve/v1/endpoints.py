"""The agent for clients that speak OpenAI's protocols, as `/v1/chat/completions` and `/v1/responses`, and its vectors.

The earlier messages of a request are the conversation; what comes back is the agent's answer in Markdown, with the
numbers of its sources in the text, and the sources themselves in `citations`, a field of our own. What passages hold of
Markdown is escaped. `/v1/embeddings` has the vectors of the server's embedding model. Nothing is stored.
"""

import asyncio
import base64
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.chat.citations import cited_sources, describe_source
from agent.chat.export import mark_in_markdown
from agent.chat.session import Assistant, Observer, Session
from agent.chat.store import Store
from agent.models.cancellation import CancellationToken
from agent.serve.request_queue import QueuedQuestion, RequestQueue
from agent.serve.v1.requests import (
    MODEL,
    POLL_SECONDS,
    TEXT,
    ModelRequest,
    RequestError,
    RequestMessage,
    decode_request,
    join_messages,
    name_ignored,
    to_request_error,
    to_turns,
    wait_for_result,
)
from indexes.ranking.vectors import Embedder, Vectors
from indexes.text.response_length import response_length
from schemas.records import Message, TurnResult
from schemas.records import Response as Answer

KEEPALIVE_SECONDS = 10  # after which a waiting client is sent a comment, so that it does not give up
MAX_TEXTS = 256  # of one request for vectors
Job = QueuedQuestion[TurnResult]
TokenLimit = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class CompletionRequest(ModelRequest):
    """A chat completion. Other fields (temperature and so on) have no effect, and the reply says so."""

    said_in: ClassVar[str] = "messages"
    messages: list[RequestMessage]
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None

    @property
    def limit(self) -> int | None:
        return min(filter(None, (self.max_tokens, self.max_completion_tokens)), default=None)


class ResponseRequest(ModelRequest):
    """A response. Other fields (temperature and so on) have no effect, and the reply says so."""

    said_in: ClassVar[str] = "input"
    messages: str | list[RequestMessage] = msgspec.field(name=said_in)
    stream: bool | None = False
    limit: TokenLimit | None = msgspec.field(name="max_output_tokens", default=None)


class EmbeddingRequest(ModelRequest):
    """A request of vectors. Other fields that it may have (`user`) have no effect, and the reply says so."""

    input: Text | Annotated[list[Text], msgspec.Meta(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] | None = "float"


@dataclass(slots=True)
class Reply:
    """What is sent of an answer: as many whole pieces as fit, counted as the tracks count."""

    job: Job
    asked: Any  # the request
    text: str = ""
    is_cut: bool = False  # so that pieces were left out
    written: int = 0  # events of a response
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def add(self, piece: str) -> str:
        """Take a piece in; what is sent of it: all, or nothing."""
        longer = self.text + piece
        self.is_cut |= self.asked.limit is not None and response_length(longer) > self.asked.limit
        if self.is_cut:
            return ""
        self.text = longer
        return piece

    def cite(self) -> list[dict[str, Any]]:
        return list_citations(self.job.future.result(), self.text)

    def count_tokens(self) -> tuple[int, int]:
        """How many the language model read and wrote, in all prompts; a reply from the cache as when it was made."""
        calls = self.job.calls
        read = sum(call.tokens_read + call.cached_tokens_read for call in calls)
        return read, sum(call.tokens_written + call.cached_tokens_written for call in calls)


class CompletionReply(Reply):
    def write_whole(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._end}
        return self._frame("chat.completion", [choice]) | {"usage": self._show_usage(), "citations": self.cite()}

    def begin(self) -> Iterator[ServerSentEvent]:
        yield self._chunk({"role": "assistant", "content": ""})

    def write_text(self, text: str) -> ServerSentEvent:
        return self._chunk({"content": text})

    def end(self) -> Iterator[ServerSentEvent]:
        yield self._chunk({}, self._end, citations=self.cite())
        if (self.asked.stream_options or {}).get("include_usage"):
            yield _write_event(self._frame("chat.completion.chunk", []) | {"usage": self._show_usage()})
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

    def _show_usage(self) -> dict[str, Any]:
        read, written = self.count_tokens()
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


class ResponseReply(Reply):
    """A response, whose events are numbered."""

    def write_whole(self) -> dict[str, Any]:
        read, written = self.count_tokens()
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
            "citations": self.cite(),
        }

    def begin(self) -> Iterator[ServerSentEvent]:
        for kind in ("created", "in_progress"):
            yield self._event(kind, response=self._frame("in_progress"))
        yield self._event("output_item.added", output_index=0, item=self._message("in_progress", []))
        yield self._event("content_part.added", **self._place, part=_make_part(""))

    def write_text(self, text: str) -> ServerSentEvent:
        return self._event("output_text.delta", **self._place, delta=text, logprobs=[])

    def end(self) -> Iterator[ServerSentEvent]:
        whole = self.write_whole()
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
            "max_output_tokens": self.asked.limit,
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
class Endpoints:
    """Those of conversations differ in how a request is read and a reply is written. All wait in the same queue."""

    assistant: Assistant
    store: Store
    queue: RequestQueue

    def routes(self) -> list[Route]:
        answer_in_chat = partial(self._answer, CompletionRequest, CompletionReply)
        respond = partial(self._answer, ResponseRequest, ResponseReply)
        return [
            Route("/v1/chat/completions", answer_in_chat, methods=["POST"]),
            Route("/v1/responses", respond, methods=["POST"]),
            Route("/v1/embeddings", self.embed, methods=["POST"]),
            Route("/v1/models", self.list_models),
        ]

    async def list_models(self, _request: Request) -> Response:
        embedder = self.assistant.current.embedder
        names = [MODEL, embedder.name] if embedder else [MODEL]
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "local"} for name in names]
        return JSONResponse({"object": "list", "data": models})

    async def embed(self, request: Request) -> Response:
        """One vector of length 1 for each text, in their order."""
        if (embedder := self.assistant.current.embedder) is None:
            told = "this server has no embedding model (serve --embedder opens one)"
            raise RequestError(404, told, "model", "model_not_found")
        asked, ignored = decode_request(await request.body(), EmbeddingRequest, embedder.name)
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        job = self.queue.submit(lambda observer: _embed_texts(texts, embedder, observer.token), request.state.user)
        vectors, tokens = await wait_for_result(request, job)
        rows = vectors.astype("<f4")
        is_base64 = asked.encoding_format == "base64"
        encoded = [base64.b64encode(row.tobytes()).decode() for row in rows] if is_base64 else rows.tolist()
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(encoded)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        reply = {"object": "list", "data": data, "model": embedder.name, "usage": usage}
        return JSONResponse(reply, 200, name_ignored(ignored))

    async def _answer(
        self, asked_as: type[CompletionRequest | ResponseRequest], replied_as: type[AnyReply], request: Request
    ) -> Response:
        queue = self.queue
        asked, ignored = decode_request(await request.body(), asked_as, MODEL)
        messages, instructions = join_messages(asked.messages, asked.said_in)
        job = self._submit(messages, request.state.user)
        reply, headers = replied_as(job, asked), name_ignored((*ignored, *instructions))
        if asked.stream:
            return EventSourceResponse(
                _stream_events(reply),
                headers=headers,
                sep="\n",
                ping=KEEPALIVE_SECONDS,
                ping_message_factory=lambda: ServerSentEvent(comment=f"{queue.count_before(job)} before you", sep="\n"),
            )
        for piece in cut_into_pieces((await wait_for_result(request, job)).response):
            reply.add(piece)
        return JSONResponse(reply.write_whole(), 200, headers)

    def _submit(self, messages: tuple[Message, ...], user: str) -> Job:
        """Put the last message in the queue. Raises `BusyError`."""

        def answer(observer: Observer) -> TurnResult:
            turns = to_turns(messages[:-1], self.assistant.collection, self.assistant.initial_scope)
            session = Session(self.assistant, self.store.for_user(user), turns=turns, is_kept=False)
            return session.ask(messages[-1].text, observer)

        return self.queue.submit(answer, user)


async def _stream_events(reply: AnyReply) -> AsyncIterator[ServerSentEvent]:
    """An answer, each sentence as soon as it was checked. Where the client goes away, it is cancelled."""
    job, is_there, taken = reply.job, False, 0
    answer = asyncio.wrap_future(job.future)
    try:
        for event in reply.begin():
            yield event
        while not is_there:
            is_there = bool((await asyncio.wait([answer], timeout=POLL_SECONDS))[0])
            pieces = cut_into_pieces(answer.result().response if is_there else job.response)
            for text in map(reply.add, pieces[taken:]):
                if text:
                    yield reply.write_text(text)
            taken = len(pieces)
        for event in reply.end():
            yield event
    except Exception as error:
        yield reply.fail(to_request_error(error))
    finally:
        answer.cancel()  # nobody hears what it raises from now on
        job.cancel()


def _embed_texts(texts: Sequence[str], embedder: Embedder, token: CancellationToken) -> tuple[Vectors, int]:
    """Vectors, without a look into any cache, and how many tokens the texts have together.

    Raises `RequestError` for a text of which the end would be cut off, and `AnswerCancelledError` between two texts.
    """
    counts = [embedder.count_tokens(text) for text in texts]
    for place, count in enumerate(counts):
        if count > embedder.max_tokens:
            told = f"input[{place}] has {count} tokens, where {embedder.name} reads at most {embedder.max_tokens}"
            raise RequestError(400, told, "input", "context_length_exceeded")
    rows = []
    for text in texts:
        token.raise_if_cancelled()
        rows.append((embedder.uncached or embedder).embed([text]))
    return np.concatenate(rows), sum(counts)


def cut_into_pieces(response: Answer) -> list[str]:
    """An answer in Markdown, in pieces to be joined, none of which is cut."""
    return [f" {piece}" if place else piece for place, piece in enumerate(mark_in_markdown(response))]


def list_citations(answered: TurnResult, sent: str) -> list[dict[str, Any]]:
    """The sources of what was sent of an answer; none where it repeats one before, whose numbers it has."""
    if not answered.passages:
        return []
    response = answered.response
    pieces = mark_in_markdown(replace(response, direct=""))
    kept = [sentence for sentence, piece in zip(response.sentences, pieces, strict=True) if piece in sent]
    said = replace(answered, responses=(replace(response, sentences=tuple(kept), nearby=()),))
    return [describe_source(source) for source in cited_sources(said)]
