"""Requests to `/v1` as records, and the names of what in them has no effect."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from agent.serve.v1.errors import RequestError, refuse_field

IGNORED_HEADER = "X-Convagent-Ignored"
MAX_NAMES = 30  # of fields in the header
_FIELD_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # which is safe in a header
Request = TypeVar("Request", bound=msgspec.Struct)


def decode_request(body: bytes, kind: type[Request]) -> tuple[Request, tuple[str, ...]]:
    """A request, and the fields that it has and the record has not. Raises `RequestError` for what cannot be read."""
    try:
        fields = msgspec.json.decode(body)
        request = msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise RequestError(400, str(error), param=path.strip(".`") or _missing_field(what)) from error
    except (ValueError, RecursionError) as error:  # of msgspec too; deep nesting, no UTF-8, numbers without end
        raise RequestError(400, f"the request is not JSON ({error})") from error
    known = kind.__struct_fields__
    ignored = (name for name, value in fields.items() if name not in known and value is not None)
    return request, tuple(name for name in ignored if _FIELD_NAME.fullmatch(name))


def name_ignored(ignored: tuple[str, ...]) -> dict[str, str]:
    """The header that says what of a request has no effect; none where all of it has."""
    return {IGNORED_HEADER: ", ".join(ignored[:MAX_NAMES])} if ignored else {}


def check_tools(request: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of tools that are never to be called. Raises `RequestError` where some might be.

    Given are the fields of definitions, each with that of the choice among them: `tools`, `tool_choice`.
    """
    ignored = []
    for name, choice in (("tools", "tool_choice"), ("functions", "function_call")):
        if not request.get(name):
            continue
        if request.get(choice) != "none":
            raise refuse_field(name, f"{name} cannot be called: convagent only searches its passages")
        ignored.append(name)
    return tuple(ignored)


def _missing_field(what: str) -> str | None:
    found = re.search(r"field `(\w+)`", what)
    return found[1] if found else None
