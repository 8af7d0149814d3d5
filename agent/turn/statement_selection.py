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
from agent.models.pmi import normalised_pmi
from agent.models.protocol import Conversation, LanguageModel, Task
from indexes.ranking.vectors import Embed, combine_vectors
from schemas.records import Query, ScoredStatement, Statement

if TYPE_CHECKING:
    from agent.flow import Tools

Numbers = npt.NDArray[np.float64]
MAX_STATEMENTS = 6  # statements a turn


@dataclass(frozen=True, slots=True)
class StatementClassifier:
    """What each kind of evidence weighs: by itself, and by how far it lies behind that of the turn's best statement."""

    constant: float
    weights: tuple[float, ...]  # of the kinds of evidence in their order, then of how far each lies behind

    def likely(self, evidence: Numbers) -> list[float]:
        """How likely each statement matters, if any does."""
        odds = self.constant + add_margins(evidence) @ np.asarray(self.weights)
        return [float(likely) for likely in 1 / (1 + np.exp(-odds))]


# By whether a language model judges by likelihood, and whether there is an embedding model.
CLASSIFIERS = {
    (True, True): StatementClassifier(-0.61, (0.97, 2.55, 3.24, 4.09)),
    (True, False): StatementClassifier(-0.77, (3.0, 4.93)),
    (False, True): StatementClassifier(-1.03, (0.0, 3.93, 0.03, 4.58)),
    (False, False): StatementClassifier(-1.3, (0.05, 0.04)),
}


def select_statements(
    conversation: Conversation, query: Query, ptkb: Sequence[Statement], tools: "Tools"
) -> tuple[ScoredStatement, ...]:
    """The statements that matter, best first, scored by how likely they do; none where it is not sure that any does."""
    if not ptkb:
        return ()
    rule = CLASSIFIERS[tools.llm.has_likelihoods, tools.embed is not None]
    likely = rule.likely(gather_evidence(conversation, query, ptkb, tools.llm, tools.embed))
    return tuple(
        ScoredStatement(ptkb[n], round(likely[n], 4)) for n in select_by_expected_f1(likely, tools.plan.min_probability)
    )


def gather_evidence(
    conversation: Conversation, query: Query, ptkb: Sequence[Statement], llm: LanguageModel, embed: Embed | None
) -> Numbers:
    """The evidence for each statement, a row each: how much likelier it became, and how close it is in meaning."""
    texts = [statement.text for statement in ptkb]
    prompt = prompts.render("statements")
    kinds = [normalised_pmi(llm, conversation, Task("statements", prompt.instruction, prompt.opening), texts)]
    if embed is not None:
        meant = combine_vectors(embed, [(query.utterance, 1.0), (query.standalone, 1.0)])
        kinds.append([float(cosine) for cosine in embed(texts) @ meant])
    return np.asarray(kinds, dtype=np.float64).T


def add_margins(evidence: Numbers) -> Numbers:
    """Each kind of evidence, and how far it lies behind the best of the turn."""
    return np.hstack([evidence, evidence - evidence.max(axis=0)])


def select_by_expected_f1(likely: Sequence[float], min_probability: float = 0.0) -> list[int]:
    """The numbers of the statements, likeliest first, whose choice has the highest expected F1, if any matters.

    Statements are taken to matter independently of each other. None are chosen where the best is not `sure` to.
    """
    order = sorted(range(len(likely)), key=lambda number: -likely[number])
    if not order or likely[order[0]] < min_probability:
        return []
    sizes = range(1, min(MAX_STATEMENTS, len(order)) + 1)
    best = max(sizes, key=lambda size: _expected_f1([likely[n] for n in order], size))
    return order[:best]


def _expected_f1(likely: Sequence[float], size: int) -> float:
    """Of choosing the first `size`: the mean of 2 hits / (chosen + relevant) over all that may be true."""
    hits, missed = count_distribution(likely[:size]), count_distribution(likely[size:])
    hit, rest = np.arange(len(hits))[:, None], np.arange(len(missed))[None, :]
    return float(np.sum(np.outer(hits, missed) * 2 * hit / (size + hit + rest)))


def count_distribution(likely: Sequence[float]) -> Numbers:
    """How likely 0, 1, 2, ... of them are true."""
    chances = np.ones(1)
    for p in likely:
        chances = np.convolve(chances, [1 - p, p])
    return chances
