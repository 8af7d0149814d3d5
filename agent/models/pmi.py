"""Judging by likelihood: how much likelier the conversation makes a candidate."""

from collections.abc import Sequence
from dataclasses import replace

from agent.models.protocol import Conversation, LanguageModel, Task


def normalised_pmi(
    llm: LanguageModel, conversation: Conversation, task: Task, candidates: Sequence[str]
) -> list[float]:
    """How much likelier each candidate becomes after the conversation, as a share of its surprise without it.

    (log P(candidate | conversation) - log P(candidate)) / -log P(candidate): the pointwise mutual information, free
    of the candidate's length and rarity. At most 1; 0 where the conversation says nothing about it. The prior is asked
    with the same task and no messages. Models without likelihoods have the prior 0, and their scores stay as they
    are.
    """
    after = llm.score(conversation, task, candidates)
    before = llm.score(replace(conversation, messages=()), task, candidates)
    return [(new - old) / max(1.0, -old) for new, old in zip(after, before, strict=True)]
