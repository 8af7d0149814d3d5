"""What goes wrong in `/v1`, as OpenAI's error object."""

import logging
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from agent.serve.request_queue import RETRY_SECONDS, BusyError
from schemas.errors import ConvagentError, UsageError

PATHS = "/v1/models, /v1/chat/completions, /v1/responses, /v1/embeddings"
MAX_CHARACTERS = 500  # of a message
log = logging.getLogger("convagent")


class RequestError(Exception):
    """A request that cannot be answered, in OpenAI's form."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        if len(message) > MAX_CHARACTERS:  # it repeats what was sent
            message = f"{message[:MAX_CHARACTERS]}..."
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refuse_field(param: str, message: str) -> RequestError:
    """The refusal of a field that nothing here can heed."""
    return RequestError(400, message, param=param, code="unsupported_parameter")


def refuse_value(param: str, message: str) -> RequestError:
    """The refusal of a value, where others of the same field can be heeded."""
    return RequestError(400, message, param=param, code="unsupported_value")


def error_response(_request: Request, error: Exception) -> Response:
    """An error in OpenAI's form."""
    problem = to_request_error(error)
    headers = {"Retry-After": str(RETRY_SECONDS)} if isinstance(error, BusyError) else None
    return JSONResponse(problem.body, problem.status, headers)


def to_request_error(error: Exception) -> RequestError:
    """Whatever was raised while a request was answered."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, HTTPException):
        known = f" (there are {PATHS})" if error.status_code == 404 else ""
        return RequestError(error.status_code, f"{error.detail}{known}")
    if isinstance(error, ClientDisconnect):
        return RequestError(499, "the client went away")
    if isinstance(error, UsageError):
        return RequestError(400, error.what)
    if isinstance(error, BusyError):
        return RequestError(503, str(error), code="busy")
    if isinstance(error, ConvagentError):
        return RequestError(500, str(error))
    log.error("/v1 failed", exc_info=error)
    return RequestError(500, f"convagent failed ({type(error).__name__})")
