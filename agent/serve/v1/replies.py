"""An answer as OpenAI's chat completion, and as its response: whole, and as the events of a stream."""

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sse_starlette.event import ServerSentEvent

from agent.serve.v1.answering import MODEL, AnswerLimits, Job, Shortening, count_usage, list_citations
from agent.serve.v1.requests import RequestError
from schemas.records import Message


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
