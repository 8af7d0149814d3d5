"""Which personal statements matter for this turn: judged by likelihood and by meaning, not by asking.

How much likelier the conversation makes a statement needs no instruction-following, so a 135M model tells it as well as
a prompted 8B one (docs/log.md). A logistic regression weighs it together with the cosine of an embedding model, and the
set with the highest expected F1 is chosen. `benchmarks/ptkb_quality.py --fit` derives every number of this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import prompts
from agent.llm.likelihood import gains
from agent.llm.seam import LLM, Conversation, Task
from indexes.vectors import Embed, direction
from schemas.records import Chosen, Query, Statement

if TYPE_CHECKING:
    from agent.flow import Tools

Numbers = npt.NDArray[np.float64]
AT_MOST = 6  # statements a turn


@dataclass(frozen=True, slots=True)
class Rule:
    """What each kind of evidence weighs: by itself, and by how far it lies behind that of the turn's best statement."""

    constant: float
    weights: tuple[float, ...]  # of the kinds of evidence in their order, then of how far each lies behind

    def likely(self, evidence: Numbers) -> list[float]:
        """How likely each statement matters, if any does."""
        odds = self.constant + features(evidence) @ np.asarray(self.weights)
        return [float(likely) for likely in 1 / (1 + np.exp(-odds))]


# By whether a language model judges by likelihood, and whether there is an embedding model.
RULES = {
    (True, True): Rule(-0.61, (0.97, 2.55, 3.24, 4.09)),
    (True, False): Rule(-0.77, (3.0, 4.93)),
    (False, True): Rule(-1.03, (0.0, 3.93, 0.03, 4.58)),
    (False, False): Rule(-1.3, (0.05, 0.04)),
}


def choose_statements(
    conversation: Conversation, query: Query, ptkb: Sequence[Statement], tools: "Tools"
) -> tuple[Chosen, ...]:
    """The statements that matter, best first, scored by how likely they do; none where it is not sure that any does."""
    if not ptkb:
        return ()
    rule = RULES[tools.llm.judges, tools.embed is not None]
    likely = rule.likely(weigh(conversation, query, ptkb, tools.llm, tools.embed))
    return tuple(Chosen(ptkb[n], round(likely[n], 4)) for n in best_set(likely, tools.plan.sure))


def weigh(
    conversation: Conversation, query: Query, ptkb: Sequence[Statement], llm: LLM, embed: Embed | None
) -> Numbers:
    """The evidence for each statement, a row each: how much likelier it became, and how close it is in meaning."""
    texts = [statement.text for statement in ptkb]
    prompt = prompts.render("statements")
    kinds = [gains(llm, conversation, Task("statements", prompt.instruction, prompt.opening), texts)]
    if embed is not None:
        meant = direction(embed, [(query.utterance, 1.0), (query.standalone, 1.0)])
        kinds.append([float(cosine) for cosine in embed(texts) @ meant])
    return np.asarray(kinds, dtype=np.float64).T


def features(evidence: Numbers) -> Numbers:
    """Each kind of evidence, and how far it lies behind the best of the turn."""
    return np.hstack([evidence, evidence - evidence.max(axis=0)])


def best_set(likely: Sequence[float], sure: float = 0.0) -> list[int]:
    """The numbers of the statements, likeliest first, whose choice has the highest expected F1, if any matters.

    Statements are taken to matter independently of each other. None are chosen where the best is not `sure` to.
    """
    order = sorted(range(len(likely)), key=lambda number: -likely[number])
    if not order or likely[order[0]] < sure:
        return []
    sizes = range(1, min(AT_MOST, len(order)) + 1)
    best = max(sizes, key=lambda size: _expected_f1([likely[n] for n in order], size))
    return order[:best]


def _expected_f1(likely: Sequence[float], size: int) -> float:
    """Of choosing the first `size`: the mean of 2 hits / (chosen + relevant) over all that may be true."""
    hits, missed = _count(likely[:size]), _count(likely[size:])
    hit, rest = np.arange(len(hits))[:, None], np.arange(len(missed))[None, :]
    return float(np.sum(np.outer(hits, missed) * 2 * hit / (size + hit + rest)))


def _count(likely: Sequence[float]) -> Numbers:
    """How likely 0, 1, 2, ... of them are true."""
    chances = np.ones(1)
    for p in likely:
        chances = np.convolve(chances, [1 - p, p])
    return chances
