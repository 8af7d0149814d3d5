"""Which personal statements matter for this turn: judged by likelihood, not by asking.

Ranking statements by how much likelier the conversation makes them needs no instruction-following, so a 135M model does
it as well as a prompted 8B one (docs/log.md).
"""

from collections.abc import Sequence

import prompts
from agent.llm.likelihood import gains
from agent.llm.seam import LLM, Conversation, Task
from schemas.records import Chosen, Statement

# A statement's least gain: by likelihood, near the best on the NIST labels of 2023; by word overlap, by hand.
AT_LEAST, AT_LEAST_WITHOUT_MODEL = 0.12, 3.0
AT_MOST = 2  # statements a turn


def choose_statements(conversation: Conversation, ptkb: Sequence[Statement], llm: LLM) -> tuple[Chosen, ...]:
    """The statements that matter, best first; often none."""
    prompt = prompts.render("statements")
    task = Task("statements", prompt.instruction, prompt.opening)
    scores = gains(llm, conversation, task, [statement.text for statement in ptkb])
    ranked = sorted(zip(scores, ptkb, strict=True), key=lambda pair: -pair[0])
    least = AT_LEAST_WITHOUT_MODEL if llm.name == "none" else AT_LEAST
    return tuple(Chosen(statement, round(score, 4)) for score, statement in ranked[:AT_MOST] if score >= least)
