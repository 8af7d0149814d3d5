"""Fitting a prompt into what a model reads at once: the oldest exchanges are left out."""

from collections.abc import Iterator
from dataclasses import replace

from agent.models.protocol import Conversation, Task
from schemas.errors import ModelError


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
