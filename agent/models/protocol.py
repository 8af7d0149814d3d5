"""What every model can do: two verbs, `ask` and `score`, what it says about itself, and the form of its replies.

A small model is a poor writer and a good judge *by likelihood*, so judging has a verb of its own. Every prompt of a
turn is the same conversation with the task after it, never before it: what two prompts share is read once.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast

import msgspec

from schemas.errors import ModelError, ModelReplyError
from schemas.records import Call, Message

Listener = Callable[[Call], None]
TextListener = Callable[[str], None]  # is handed a reply as far as it is written, again and again
Reply = TypeVar("Reply")
Prompt = TypeVar("Prompt")


def ignore_call(_call: Call) -> None:
    """Do nothing with a call."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a model is shown before any task. The last message is the user's."""

    system: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """What a model is to do with a conversation."""

    name: str
    instruction: str = ""  # follows the last message; empty: simply go on with the conversation
    opening: str = ""  # the beginning of the reply, which the model need not write
    max_tokens: int = 128
    seed: int | None = None  # the reply is sampled, repeatably; without one it is the likeliest
    adapter: str = ""  # what the model was taught for it (`LanguageModel.adapters`), which reads a prompt of its own


class LanguageModel(Protocol):
    """Implemented in `llama_cpp` (any GGUF), `openai_server` (a server's model), `scripted` (tests) and `no_model`.

    What differs between them is asked of these attributes, never guessed from a name.
    """

    name: str  # that it was opened by, as the trace and the run keep it
    digest: str  # SHA-256 of the weights, or of whatever else is known to decide the replies
    settings: str = ""  # the constants that decide the replies beside weights and prompt, as the trace keeps them
    runs_here: bool = False  # whether llama.cpp computes it in this process: the last bits hang on the processor
    generates_text: bool = True  # whether it can be asked at all; else `ask` gives an empty reply
    writes_answers: bool = False  # whether it is large enough to be trusted with writing an answer freely
    has_likelihoods: bool = False  # whether `score` is a likelihood; else it counts shared words
    adapters: Collection[str] = ()  # the tasks that it was taught

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        """A reply held to the JSON Schema of `reply` (a msgspec Struct); plain text where `reply` is `str`.

        `on_text` is handed the reply while it is written, as the model writes it: without the opening, from the front
        again where it is asked anew, and never where the reply was known.
        Where not everything fits, the oldest exchanges are left out, and the trace says so. Raises `ModelReplyError`
        where the reply is of another form, `PromptTooLongError` where not even the newest message and the task fit,
        `ModelError` where the model cannot be asked.
        """

    def close(self) -> None:
        """Free its memory. It cannot be used afterwards."""
        return

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        """The natural-log likelihood of each candidate as what the assistant says next. One number a candidate.

        Of a model without likelihoods: by shared words, higher is better.
        """

    def compare(self, question: str, texts: Sequence[str]) -> list[float]:
        """How surely each text answers a question, log odds to be held against each other; one number a text.

        All the same of a model that was not taught it.
        """
        return [0.0] * len(texts)


class PromptTooLongError(ModelError):
    """Not even the newest message and the task fit."""


def fit_prompt(
    conversation: Conversation,
    task: Task,
    room: int,
    render: Callable[[Conversation], Prompt],
    count_tokens: Callable[[Prompt], int],
) -> tuple[Prompt, tuple[str, ...]]:
    """The prompt of at most `room` tokens, and what is left out of it: the oldest exchanges give way.

    Raises `PromptTooLongError` where even the newest message and the task do not fit.
    """
    for left_out in range((len(conversation.messages) + 1) // 2 or 1):
        prompt = render(replace(conversation, messages=conversation.messages[2 * left_out :]))
        if (tokens := count_tokens(prompt)) <= room:
            return prompt, tuple(f"exchange {number}" for number in range(1, left_out + 1))
    what = f"the prompt of step {task.name!r} takes {tokens} tokens, and {max(room, 0)} are left beside its reply"
    raise PromptTooLongError(what, remedy="Shorten the turn, or use a model that reads more at once.")


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


def clean_text_reply(text: str, task: Task) -> Any:
    """A reply in plain text, with its opening."""
    return f"{task.opening} {strip_thinking(text)}".strip()


def strip_thinking(text: str) -> str:
    """Without a reasoning model's thinking, which is never part of an answer."""
    return _THINKING.sub("", text).strip()
