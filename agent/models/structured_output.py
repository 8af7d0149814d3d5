"""The form that a model's reply must have, and how it is read, whichever model writes it."""

import json
import re
from typing import Any, cast

import msgspec

from agent.models.protocol import Reply, Task
from schemas.errors import ModelReplyError

TEMPERATURE = 0.8  # of a sampled reply
# Where the chat template opens it, the reply begins within the thinking.
_THINKING = re.compile(r"\A(?:(?!<think>).)*</think>|<think>.*?(?:</think>|\Z)", re.DOTALL)


def reply_schema(reply: Any) -> dict[str, Any]:
    """The JSON Schema of a reply type, without references: makers of grammars fail on one that refers to another."""
    schema = msgspec.json.schema(reply)
    return cast("dict[str, Any]", _inline_refs(schema, schema.get("$defs", {})))


def _inline_refs(part: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(part, list):
        return [_inline_refs(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inline_refs(definitions[part["$ref"].rpartition("/")[2]], definitions)
    return {key: _inline_refs(value, definitions) for key, value in part.items() if key != "$defs"}


def parse_reply(text: str, reply: type[Reply], task: Task) -> Reply:
    """A reply of that type. Raises `ModelReplyError` for any other; most often it was cut off."""
    try:
        return msgspec.json.decode(text, type=reply)
    except msgspec.DecodeError as error:
        what = f"the model's reply to step {task.name!r} was cut off or is of another form ({error})"
        raise ModelReplyError(what) from error


def read_whole_items(text: str, name: str) -> list[Any]:
    """The items of a reply's first list, which has this name, that are whole while the rest is still being written."""
    opened = re.match(rf'\{{\s*"{name}"\s*:\s*\[', strip_thinking(text))
    rest = strip_thinking(text)[opened.end() :] if opened else ""
    items: list[Any] = []
    while rest := rest.lstrip(" \t\r\n,"):
        try:
            item, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            break
        items.append(item)
        rest = rest[end:]
    return items


def clean_text_reply(text: str, task: Task) -> Any:
    """A reply in plain text, with its opening."""
    return f"{task.opening} {strip_thinking(text)}".strip()


def strip_thinking(text: str) -> str:
    """Without a reasoning model's thinking, which is never part of an answer."""
    return _THINKING.sub("", text).strip()
