"""Requests to `/v1` as records: what in them can be read, what has no effect, and what goes wrong, as OpenAI has it."""

import logging
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from agent.chat.session import check_utterance
from agent.serve.request_queue import RETRY_SECONDS, BusyError
from schemas.errors import ConvagentError, UsageError
from schemas.records import Message

MODEL = "convagent"
PATHS = "/v1/models, /v1/chat/completions, /v1/responses, /v1/embeddings"
MAX_CHARACTERS = 500  # of an error's message, which may repeat what was sent
IGNORED_HEADER = "X-Convagent-Ignored"
MAX_NAMES = 30  # of fields in that header
TEXT_PARTS = ("text", "input_text", "output_text")  # of chat completions; of responses
INSTRUCTORS = ("system", "developer")
_FIELD_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # which is safe in a header
_Record = TypeVar("_Record", bound=msgspec.Struct)
log = logging.getLogger("convagent")


class RequestError(Exception):
    """A request that cannot be answered, in OpenAI's form."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        if len(message) > MAX_CHARACTERS:
            message = f"{message[:MAX_CHARACTERS]}..."
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refuse(param: str, message: str, code: str = "unsupported_value") -> RequestError:
    """The refusal of a value, or of a field that nothing here can heed ("unsupported_parameter")."""
    return RequestError(400, message, param=param, code=code)


def refuse_model(name: str, available: str) -> RequestError:
    """The refusal of a model that is not served."""
    message = f"unknown model {name!r} (available: {available})"
    return RequestError(404, message, param="model", code="model_not_found")


def error_response(_request: Request, error: Exception) -> Response:
    """An error in OpenAI's form."""
    problem = to_request_error(error)
    headers = {"Retry-After": str(RETRY_SECONDS)} if isinstance(error, BusyError) else None
    return JSONResponse(problem.body, problem.status, headers)


def to_request_error(error: Exception) -> RequestError:
    """Whatever was raised while a request was answered."""
    match error:
        case RequestError():
            return error
        case HTTPException():
            known = f" (there are {PATHS})" if error.status_code == 404 else ""
            return RequestError(error.status_code, f"{error.detail}{known}")
        case ClientDisconnect():
            return RequestError(499, "the client went away")
        case UsageError():
            return RequestError(400, error.what)
        case BusyError():
            return RequestError(503, str(error), code="busy")
        case ConvagentError():
            return RequestError(500, str(error))
    log.error("/v1 failed", exc_info=error)
    return RequestError(500, f"convagent failed ({type(error).__name__})")


def decode_request(body: bytes, kind: type[_Record]) -> tuple[_Record, tuple[str, ...]]:
    """A request, and the fields that it has and the record has not. Raises `RequestError` for what cannot be read."""
    try:
        fields = msgspec.json.decode(body)
        request = msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        missing = re.search(r"field `(\w+)`", what)
        raise RequestError(400, str(error), param=path.strip(".`") or (missing[1] if missing else None)) from error
    except (ValueError, RecursionError) as error:  # of msgspec too; deep nesting, no UTF-8, numbers without end
        raise RequestError(400, f"the request is not JSON ({error})") from error
    known = kind.__struct_fields__
    ignored = (name for name, value in fields.items() if name not in known and value is not None)
    return request, tuple(name for name in ignored if _FIELD_NAME.fullmatch(name))


def name_ignored(ignored: tuple[str, ...]) -> dict[str, str]:
    """The header that says what of a request has no effect; none where all of it has."""
    return {IGNORED_HEADER: ", ".join(ignored[:MAX_NAMES])} if ignored else {}


def check_tools(request: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of tools that are never to be called. Raises `RequestError` where some might be."""
    ignored = []
    for name, choice in (("tools", "tool_choice"), ("functions", "function_call")):
        if not request.get(name):
            continue
        if request.get(choice) != "none":
            told = f"{name} cannot be called: convagent only searches its passages"
            raise refuse(name, told, "unsupported_parameter")
        ignored.append(name)
    return tuple(ignored)


class ContentPart(msgspec.Struct):
    """A piece of a message's content."""

    type: str
    text: str = ""


class RequestMessage(msgspec.Struct):
    """A message of a request."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ContentPart]
    type: Literal["message"] = "message"

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


def join_messages(messages: Sequence[RequestMessage], field: str) -> tuple[Message, ...]:
    """What was said: without instructions, and consecutive messages of one side joined. The last is the user's.

    Raises `RequestError` where there is no such last message, where it is too long, and for what is no text.
    """
    for place, message in enumerate(messages):
        for number, part in enumerate(message.content if isinstance(message.content, list) else ()):
            if part.type not in TEXT_PARTS:
                where = f"{field}[{place}].content[{number}].type"
                raise refuse(where, f"only text can be read, and {where} is {part.type!r}")
    spoken = [message for message in messages if message.role not in INSTRUCTORS and message.text.strip()]
    if not spoken or messages[-1] is not spoken[-1] or spoken[-1].role != "user":
        raise RequestError(400, "the last message must be the user's, and not empty", param=field)
    joined = [
        Message("user" if role == "user" else "assistant", "\n".join(message.text.strip() for message in run))
        for role, run in groupby(spoken, lambda message: message.role)
    ]
    try:
        return (*joined[:-1], Message("user", check_utterance(joined[-1].text)))
    except UsageError as error:
        raise RequestError(400, error.what, param=field) from error


def name_instructions(messages: Sequence[RequestMessage]) -> tuple[str, ...]:
    """The roles of messages that have no effect."""
    return tuple(dict.fromkeys(f"{message.role} messages" for message in messages if message.role in INSTRUCTORS))
