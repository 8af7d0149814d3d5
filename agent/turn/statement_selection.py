"""Which personal statements matter for this turn: judged by likelihood and by meaning, not by asking.

How much likelier the conversation makes a statement needs no instruction-following, so a 135M model tells it as well as
a prompted 8B one (docs/log.md). A logistic regression weighs it together with the cosine of an embedding model, and the
set with the highest expected F1 is chosen. Whether any matters hardly shows in this evidence, but
in whether the turn speaks of the person. `benchmarks/ptkb_quality.py --fit` derives the numbers (schemas/tuning.py).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

import prompts
from agent.models.protocol import Conversation, LanguageModel, Task
from indexes.ranking.vectors import Embed, combine_vectors
from schemas.records import Plan, Query, ScoredStatement, Statement
from schemas.tuning import StatementClassifier, StatementTuning


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


Numbers = npt.NDArray[np.float64]
_ONESELF = re.compile(
    r"\b(?:my|mine|our|ours|myself|(?:mein|unser)(?:e[mnrs]?)?)\b"
    r"|\b(?:for|suits?|fits?|to|near|like|für) (?:me|us|mich|uns)\b|\bam i\b"
    r"|\b(?:can|may|could|should|kann|darf|soll) (?:i|we|ich|wir) (?:\w+ )?(?:eat|drink|cook|wear|essen|trinken)\b",
    re.IGNORECASE,
)


def select_statements(
    conversation: Conversation,
    query: Query,
    ptkb: Sequence[Statement],
    llm: LanguageModel,
    embed: Embed | None,
    plan: Plan,
) -> tuple[ScoredStatement, ...]:
    """The statements that matter, best first, with the probability that each does, if any does.

    None where even the best is less likely than `plan.min_probability` to matter.
    """
    if not ptkb:
        return ()
    tuning = plan.tuning.statements
    classifier = tuning.classifier(has_likelihoods=llm.has_likelihoods, has_vectors=embed is not None)
    likely = predict_probabilities(classifier, gather_evidence(conversation, query, ptkb, llm, embed))
    needed = tuning.needed_by_person if speaks_of_oneself(query.utterance) else tuning.needed_otherwise
    best = select_by_expected_f1(likely, plan.min_probability / needed, tuning.max_statements)
    return tuple(ScoredStatement(ptkb[n], round(likely[n], 4)) for n in best)


def speaks_of_oneself(utterance: str) -> bool:
    """Whether an utterance asks something for the one who asks: "for me", "my phone", "am I"."""
    return bool(_ONESELF.search(utterance))


def predict_probabilities(classifier: StatementClassifier, evidence: Numbers) -> list[float]:
    """The probability that each statement matters, if any does."""
    odds = classifier.constant + add_margins(evidence) @ np.asarray(classifier.weights)
    return [float(likely) for likely in 1 / (1 + np.exp(-odds))]


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


def select_by_expected_f1(
    likely: Sequence[float], min_probability: float = 0.0, max_statements: int = StatementTuning().max_statements
) -> list[int]:
    """The numbers of the statements, likeliest first, whose choice has the highest expected F1.

    Statements are taken to matter independently of each other. None are chosen where even the likeliest has less than
    `min_probability`.
    """
    order = sorted(range(len(likely)), key=lambda number: -likely[number])
    if not order or likely[order[0]] < min_probability:
        return []
    sizes = range(1, min(max_statements, len(order)) + 1)
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
