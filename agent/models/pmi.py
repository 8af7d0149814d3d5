"""Judging by likelihood: how much likelier a candidate becomes by what was said."""

from collections.abc import Sequence
from dataclasses import replace

from agent.models.protocol import Conversation, LanguageModel, Task


def normalised_pmi(
    llm: LanguageModel, conversation: Conversation, task: Task, candidates: Sequence[str]
) -> list[float]:
    """By what share of its own surprise each candidate becomes likelier after the conversation.

    (log P(candidate | conversation) - log P(candidate)) / -log P(candidate): the pointwise mutual information, free
    of the candidate's length and rarity. At most 1; 0 where the conversation says nothing about it. The prior is asked
    with the same task and nothing said. Models without likelihoods have the prior 0, and their scores stay as they
    are.
    """
    said = llm.score(conversation, task, candidates)
    unsaid = llm.score(replace(conversation, messages=()), task, candidates)
    return [(after - before) / max(1.0, -before) for after, before in zip(said, unsaid, strict=True)]
