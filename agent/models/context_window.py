"""What a prompt has no room for: the oldest exchanges give way."""

from collections.abc import Iterator
from dataclasses import replace

from agent.models.protocol import Conversation, Task
from schemas.errors import ModelError


def drop_oldest_exchanges(conversation: Conversation, task: Task) -> Iterator[tuple[Conversation, tuple[str, ...]]]:
    """The conversation, then without its oldest exchange, and so on, each with what it leaves unshown."""
    omitted = task.omitted
    yield conversation, omitted
    for left_out in range(1, (len(conversation.messages) + 1) // 2):
        omitted = (*omitted, f"exchange {left_out}")
        yield replace(conversation, messages=conversation.messages[2 * left_out :]), omitted


def no_room_error(task: Task, prompt: int, reply: int, size: int) -> ModelError:
    """The error where even the newest message and the task do not fit: tokens of both, and what the model reads."""
    what = f"the prompt of step {task.name!r} takes {prompt} tokens and its reply {reply}"
    return ModelError(what, remedy=f"The model reads {size} at once: shorten the turn, or use a larger model.")
