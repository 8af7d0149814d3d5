"""What every model can do: two verbs, `ask` and `score`, and what it says about itself.

A small model is a poor writer and a good judge *by likelihood*, so judging has a verb of its own. Every prompt of a
turn is the same conversation with the task after it, never before it: what two prompts share is read once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from schemas.errors import ModelError
from schemas.records import Call, Message

Listener = Callable[[Call], None]
TextListener = Callable[[str], None]  # is handed a reply as far as it is written, again and again
Reply = TypeVar("Reply")


def ignore_call(_call: Call) -> None:
    """Do nothing with a call."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a model is shown before any task. The last message is the user's."""

    system: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """What a model is to do with a conversation.

    `instruction` follows the last message (empty: simply go on with the conversation). `opening` is the beginning of
    the reply, which the model need not write. With a `seed` the reply is sampled, repeatably; without one it is the
    likeliest.
    """

    name: str
    instruction: str = ""
    opening: str = ""
    max_tokens: int = 128
    seed: int | None = None
    omitted: tuple[str, ...] = ()  # what had no room in the instruction, for the trace
    adapter: str = ""  # what the model was taught for it (`LanguageModel.adapters`), which reads a prompt of its own


class LanguageModel(Protocol):
    """Implemented in `llama_cpp` (any GGUF), `openai_server` (a server's model), `scripted` (tests) and `no_model`.

    What differs between them is asked of these properties, never guessed from a name.
    """

    @property
    def name(self) -> str:
        """The name it was opened by, as the trace and the run keep it."""

    @property
    def digest(self) -> str:
        """SHA-256 of the weights, or of whatever else is known to decide the replies."""

    @property
    def settings(self) -> str:
        """The constants that decide the replies beside weights and prompt, as the trace keeps them."""

    @property
    def runs_here(self) -> bool:
        """Whether llama.cpp computes it in this process, so that the last bits hang on the processor."""

    @property
    def generates_text(self) -> bool:
        """Whether it can be asked at all; else `ask` gives an empty reply."""

    @property
    def writes_answers(self) -> bool:
        """Whether it is large enough to be trusted with writing an answer freely."""

    @property
    def has_likelihoods(self) -> bool:
        """Whether `score` is a likelihood; else it counts shared words."""

    @property
    def adapters(self) -> frozenset[str]:
        """The tasks that it was taught."""

    def fits(self, conversation: Conversation, task: Task) -> bool:
        """Whether the whole conversation, the task and the longest reply fit in what the model reads at once."""

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        """A reply held to the JSON Schema of `reply` (a msgspec Struct); plain text where `reply` is `str`.

        `on_text` is handed the reply while it is written, as the model writes it: without the opening, from the front
        again where it is asked anew, and never where the reply was known.
        Where not everything fits, the oldest exchanges are left out, and the trace says so. Raises `ModelReplyError`
        where the reply is of another form, `ModelError` where the model cannot be asked or not even the newest message
        and the task fit.
        """

    def close(self) -> None:
        """Free its memory. It cannot be used afterwards."""

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        """The natural-log likelihood of each candidate as what the assistant says next. One number a candidate.

        Of a model without likelihoods: by shared words, higher is better.
        """


def drop_oldest_exchanges(conversation: Conversation, task: Task) -> Iterator[tuple[Conversation, tuple[str, ...]]]:
    """The conversation, then the same without its oldest exchange, and so on, each with what it leaves out."""
    omitted = task.omitted
    yield conversation, omitted
    for left_out in range(1, (len(conversation.messages) + 1) // 2):
        omitted = (*omitted, f"exchange {left_out}")
        yield replace(conversation, messages=conversation.messages[2 * left_out :]), omitted


def no_room_error(task: Task, prompt: int, reply: int, size: int) -> ModelError:
    """Where even the newest message and the task do not fit. All numbers are tokens; `size` is what the model reads."""
    what = f"the prompt of step {task.name!r} takes {prompt} tokens and its reply {reply}"
    return ModelError(what, remedy=f"The model reads {size} at once: shorten the turn, or use a larger model.")
