"""Requests to `/v1`: what in them can be read, what has no effect, and what goes wrong, as OpenAI has it."""

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from agent.chat.session import check_utterance
from agent.chat.small_talk import reply_to_small_talk
from agent.chat.store import ChatTurn
from agent.serve.rendering import choose_headers, choose_status
from agent.serve.request_queue import BusyError, QueuedQuestion
from agent.terminal.escaping import unescape_markdown
from indexes.documents.collection import Collection
from indexes.text.sentences import split_sentences
from schemas.errors import ConvagentError, UsageError
from schemas.records import Message, Query, Sentence, Turn, TurnResult
from schemas.records import Response as Answer

MODEL = "convagent"
PATHS = "/v1/models, /v1/chat/completions, /v1/responses, /v1/embeddings"
MAX_CHARACTERS = 500  # of an error's message, which may repeat what was sent
IGNORED_HEADER = "X-Convagent-Ignored"
MAX_NAMES = 30  # of fields in that header
CITATION_MARKS = re.compile(r" \[\d+(?:, \d+)*\]")  # of our own earlier answers
POLL_SECONDS = 0.1  # after which it is looked for more of an answer that is being written, and for its client
INSTRUCTORS = ("system", "developer")
TEXT = {"type": "text"}
NO_TOOLS = "convagent only searches its passages"
NOT_STORED = "nothing is stored here; the request holds all earlier messages"
# Fields that would need an effect and cannot have one: the value that may be sent all the same, and the reason.
IMPOSSIBLE: Mapping[str, tuple[object, str]] = {
    "n": (1, "there is one answer"),
    "logprobs": (None, "an answer has no probabilities of its tokens"),
    "modalities": (["text"], "an answer is text"),
    "response_format": (TEXT, "an answer is text"),
    "text.format": (TEXT, "an answer is text"),
    "tools": ([], NO_TOOLS),
    "functions": ([], NO_TOOLS),
    "previous_response_id": (None, NOT_STORED),
    "conversation": (None, NOT_STORED),
    "prompt": (None, NOT_STORED),
    "background": (None, NOT_STORED),
    "dimensions": (None, "a vector has as many numbers as the model makes"),
}
_FIELD_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # which is safe in a header
log = logging.getLogger("convagent")


class RequestError(Exception):
    """A request that cannot be answered, in OpenAI's form."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        if len(message) > MAX_CHARACTERS:
            message = f"{message[:MAX_CHARACTERS]}..."
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}


class ModelRequest(msgspec.Struct):
    model: str


def respond_to_error(_request: Request, error: Exception) -> Response:
    problem = to_request_error(error)
    return JSONResponse(problem.body, problem.status, choose_headers(error))


def to_request_error(error: Exception) -> RequestError:
    """Whatever was raised while a request was answered."""
    if isinstance(error, RequestError):
        return error
    status, told = choose_status(error), str(error)
    if isinstance(error, HTTPException):
        told = f"{error.detail} (there are {PATHS})" if status == 404 else error.detail
    elif isinstance(error, UsageError):
        told = error.what
    elif not isinstance(error, ConvagentError | ClientDisconnect):
        log.error("/v1 failed", exc_info=error)
        told = f"convagent failed ({type(error).__name__})"
    return RequestError(status, told, code="busy" if isinstance(error, BusyError) else None)


_Request = TypeVar("_Request", bound=ModelRequest)
T = TypeVar("T")


def decode_request(body: bytes, kind: type[_Request], model: str) -> tuple[_Request, tuple[str, ...]]:
    """A request of the model of that name, and those of its fields that have no effect.

    Raises `RequestError` for what cannot be read, for a field that would need an effect and cannot have one, and for
    another model.
    """
    try:
        fields = msgspec.json.decode(body)
        request = msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        missing = re.search(r"field `(\w+)`", what)
        raise RequestError(400, str(error), path.strip(".`") or (missing[1] if missing else None)) from error
    except (ValueError, RecursionError) as error:  # of msgspec too; deep nesting, no UTF-8, numbers without end
        raise RequestError(400, f"the request is not JSON ({error})") from error
    asked = {name: value for name, value in fields.items() if value is not None and value is not False}
    if isinstance(text := asked.pop("text", None), dict):
        asked["text.format"] = text.get("format") or TEXT
    for name, (possible, reason) in IMPOSSIBLE.items():
        if asked.pop(name, possible) != possible:
            raise RequestError(400, f"{name} cannot have this value: {reason}", name, "unsupported_value")
    if request.model != model:
        told = f"unknown model {request.model!r} (available: {model})"
        raise RequestError(404, told, "model", "model_not_found")
    ignored = (name for name in asked if name not in kind.__struct_encode_fields__)
    return request, tuple(name for name in ignored if _FIELD_NAME.fullmatch(name))


def name_ignored(ignored: Sequence[str]) -> dict[str, str]:
    """The header that says what of a request has no effect; none where all of it has."""
    return {IGNORED_HEADER: ", ".join(ignored[:MAX_NAMES])} if ignored else {}


class ContentPart(msgspec.Struct):
    """A piece of a message's content: a text, whatever the protocol calls it."""

    type: Literal["text", "input_text", "output_text"]
    text: str = ""


class RequestMessage(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ContentPart]
    type: Literal["message"] = "message"

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


def join_messages(said: str | Sequence[RequestMessage], field: str) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """What was said, and the kinds of instructions that were left out of it.

    Consecutive messages of one side are joined. The last is the user's.

    Raises `RequestError` where there is no such last message, and where it is too long.
    """
    messages = [RequestMessage("user", said)] if isinstance(said, str) else said
    spoken = [message for message in messages if message.role not in INSTRUCTORS and message.text.strip()]
    if not spoken or messages[-1] is not spoken[-1] or spoken[-1].role != "user":
        raise RequestError(400, "the last message must be the user's, and not empty", field)
    joined = [
        Message("user" if role == "user" else "assistant", "\n".join(message.text.strip() for message in run))
        for role, run in groupby(spoken, lambda message: message.role)
    ]
    instructions = dict.fromkeys(f"{message.role} messages" for message in messages if message.role in INSTRUCTORS)
    try:
        return (*joined[:-1], Message("user", check_utterance(joined[-1].text))), tuple(instructions)
    except UsageError as error:
        raise RequestError(400, error.what, field) from error


def to_turns(history: Sequence[Message], collection: Collection, scope: str) -> tuple[ChatTurn, ...]:
    """The turns of earlier messages. What was small talk, or asked for another scope, is so again."""
    turns: tuple[ChatTurn, ...] = ()
    said = history if history[:1] and history[0].role == "user" else (Message("user", ""), *history)
    for asked, reply in zip(said[::2], said[1::2], strict=False):
        talk = reply_to_small_talk(Turn("v1", asked.text), collection, scope)
        answered = TurnResult("v1", Query(asked.text), (), (), (), (Answer(tuple(_split_reply(reply.text))),))
        scope = talk.scope if talk else scope
        turns = (*turns, ChatTurn(asked.text, answered, talk.kind if talk else "question", scope))
    return turns


def _split_reply(text: str) -> Iterator[Sentence]:
    """The sentences of an earlier answer of ours; the numbers of its sources stand for their ids."""
    place = 0
    for mark in CITATION_MARKS.finditer(text):
        yield Sentence(unescape_markdown(text[place : mark.start()].strip()), tuple(re.findall(r"\d+", mark[0])))
        place = mark.end()
    yield from (Sentence(sentence, ()) for sentence in split_sentences(unescape_markdown(text[place:])))


async def wait_for_result(request: Request, job: QueuedQuestion[T]) -> T:
    """What was asked for. Raises what it raised, and `ClientDisconnect` where the client goes away first.

    Either way, nothing more is done for it.
    """
    answer = asyncio.wrap_future(job.future)
    try:
        while not (await asyncio.wait([answer], timeout=POLL_SECONDS))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return answer.result()
    finally:
        answer.cancel()  # nobody hears what it raises from now on
        job.cancel()
