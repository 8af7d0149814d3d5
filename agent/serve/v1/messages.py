"""The messages of a request: their text, and what was said by whom."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import msgspec

from agent.chat.session import check_utterance
from agent.serve.v1.errors import RequestError, refuse_value
from schemas.errors import UsageError
from schemas.records import Message

TEXT_PARTS = ("text", "input_text", "output_text")  # of chat completions; of responses
INSTRUCTORS = ("system", "developer")


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


def check_parts(messages: Sequence[RequestMessage], field: str) -> None:
    """Raise `RequestError` for an image, a sound or a file in the messages of that field."""
    for place, message in enumerate(messages):
        for number, part in enumerate(message.content if isinstance(message.content, list) else ()):
            if part.type not in TEXT_PARTS:
                where = f"{field}[{place}].content[{number}].type"
                raise refuse_value(where, f"only text can be read, and {where} is {part.type!r}")


def join_messages(messages: Sequence[RequestMessage], field: str) -> tuple[Message, ...]:
    """What was said: without instructions, and consecutive messages of one side joined. The last is the user's.

    Raises `RequestError` where there is no such last message, where it is too long, and for parts that are no text.
    """
    check_parts(messages, field)
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
