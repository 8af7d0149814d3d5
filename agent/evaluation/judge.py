"""A local model's verdict on an answer: do the passages that it cites say what it says?"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

import prompts
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.models.registry import MODEL_CHOICES, open_model
from indexes.storage.cache import Cache
from schemas.errors import ModelReplyError, UsageError
from schemas.records import Message, Passage

WORTH = {"yes": 1.0, "partly": 0.5, "no": 0.0}
REPLY_TOKENS = 24


class Verdict(Struct):
    """What a judge replies."""

    verdict: Literal["yes", "partly", "no"]


def open_judge(name: str, cache: Cache | None = None) -> LanguageModel:
    """The model of that name. Raises what `open_model` does, and `UsageError` for none at all."""
    judge = open_model(name, cache=cache)
    if not judge.generates_text:
        raise UsageError("a judge has to be a model", remedy=f"Models: {MODEL_CHOICES}.")
    return judge


def judge_support(llm: LanguageModel, text: str, cited: Sequence[Passage]) -> float | None:
    """1 for yes, 0.5 for partly, 0 for no; None where there is no verdict: too much to read, or no such reply."""
    conversation = Conversation("You check answers against passages.", (Message("user", ""),))
    prompt = prompts.render("judge", passages=cited, answer=text)
    task = Task("judge", prompt.instruction, prompt.opening, max_tokens=REPLY_TOKENS)
    if not llm.fits(conversation, task):
        return None
    try:
        return WORTH[llm.ask(conversation, task, Verdict).verdict]
    except ModelReplyError:
        return None
