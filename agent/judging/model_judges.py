"""Models that are asked for verdicts: which nuggets an answer holds, and how well it answers questions.

As in the Nuggetizer, ten are judged at a time. Where a model gives no verdict (too much to read, or no reply of the
wanted form) there is none: that is said, and counts as not in the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import GenericAlias
from typing import Annotated, Any

import msgspec
from msgspec import Meta

import prompts
from agent.evaluation.nuggets import Assignment
from agent.evaluation.rubric import MAX_GRADE
from agent.models.protocol import Conversation, LanguageModel, Task
from schemas.errors import ModelReplyError
from schemas.records import Message

BATCH = 10  # nuggets or questions a prompt
REPLY_TOKENS, LABEL_TOKENS = 16, 12  # around the verdicts, and of each
SYSTEM = "You check answers."


@dataclass(frozen=True, slots=True)
class LabelStep:
    """A kind of verdict that a model is asked for."""

    prompt: str
    variable: str  # of the prompt: what is judged
    label: Any  # type of a verdict


ASSIGN = LabelStep("assign", "nuggets", Assignment)
GRADE = LabelStep("grade", "questions", Annotated[int, Meta(ge=0, le=MAX_GRADE)])


def ask_for_labels(llm: LanguageModel, step: LabelStep, query: str, answer: str, texts: Sequence[str]) -> list[Any]:
    """A verdict on each text, None where there is none."""
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    return [label for batch in batches for label in _ask(llm, step, query, answer, batch)]


def _ask(llm: LanguageModel, step: LabelStep, query: str, answer: str, texts: Sequence[str]) -> list[Any]:
    prompt = prompts.render(step.prompt, query=query, answer=answer, **{step.variable: texts})
    task = Task(step.prompt, prompt.instruction, prompt.opening, REPLY_TOKENS + LABEL_TOKENS * len(texts))
    conversation = Conversation(SYSTEM, (Message("user", ""),))
    if not llm.fits(conversation, task):
        return [None] * len(texts)
    try:
        return list(llm.ask(conversation, task, _reply_type(step, len(texts))).labels)
    except ModelReplyError:
        return [None] * len(texts)


@cache
def _reply_type(step: LabelStep, count: int) -> Any:
    """What a model replies: as many labels as there are texts."""
    labels: Any = Annotated[GenericAlias(list, (step.label,)), Meta(min_length=count, max_length=count)]
    return msgspec.defstruct("Labels", [("labels", labels)])
