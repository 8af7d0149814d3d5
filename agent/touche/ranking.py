"""Ranking arguments for a question: query likelihood with Dirichlet smoothing, and what is known of arguments.

Words find candidates (Tantivy's BM25), which are scored anew with the statistics of the whole collection. That was the
organisers' baseline in both years and the core of the best runs (overviews of Touché 2020 and 2021). Scores are in nats,
and what is added to or taken from a likelihood in nats a word of the query: a long question weighs as a short one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent.touche.quality import quality, shortness
from indexes.finder import best_first
from indexes.passages import PassageIndex, Weighted, strictly_decreasing, weighted, whole_text
from indexes.statistics import Dirichlet, Statistics
from indexes.words import stems
from schemas.records import Hit, Passage

CANDIDATES = 3000  # arguments scored anew: three times what a run may hold
MU = 2000.0  # words of smoothing: Lucene's default; not tuned here
CONCLUSION = 2  # times a conclusion's words count (docs/tracks.md has what other numbers do)
SHORT = 2.0  # nats a query word that empty premises would lose; a text of 300 words loses 0.14 by its length
QUALITY = 0.5  # nats a query word between the worst and the best writing: a tie-break, not a judge (docs/tracks.md)

Score = Callable[[Mapping[str, float], Passage], float]  # weights of query words, an argument


@dataclass(frozen=True, slots=True)
class Ways:
    """What a run ranks with beside the words; each can be left out."""

    likelihood: bool = True  # Dirichlet in the place of BM25: without it nothing else counts either
    conclusion: bool = True  # the conclusion's words weigh more
    short: bool = True  # hardly an argument: pushed down
    quality: bool = True  # well written: moved up


def rank(query: Sequence[Weighted], index: PassageIndex, score: Score | None, k: int) -> tuple[Hit, ...]:
    """The `k` best arguments for weighted texts, scores strictly decreasing; by BM25 alone without a `score`."""
    if score is None:
        return index.search(query, k)
    weights = weighted(query)
    numbers = [number for number, _ in index.rank(weights, CANDIDATES)]
    found = index.read([index.id(number) for number in numbers])
    scored = ((number, score(weights, argument)) for number, argument in zip(numbers, found, strict=True))
    return strictly_decreasing((index.id(number), value) for number, value in best_first(scored)[:k])


def scorer(statistics: Statistics, ways: Ways) -> Score | None:
    """What candidates are scored with; None for BM25."""
    if not ways.likelihood:
        return None
    likelihood = Dirichlet(statistics, MU)

    def score(weights: Mapping[str, float], argument: Passage) -> float:
        adjusted = sum(weights.values()) * adjustment(argument.text, ways)
        return likelihood(weights, fielded(argument, CONCLUSION if ways.conclusion else 1)) + adjusted

    return score


def fielded(argument: Passage, times: int) -> list[str]:
    """An argument's stems, those of its conclusion `times` times."""
    return stems(argument.title) * (times - 1) + stems(whole_text(argument))


def adjustment(text: str, ways: Ways) -> float:
    """What the premises themselves, whatever the question, add to a score: nats a query word."""
    pushed = SHORT * shortness(text) if ways.short else 0.0
    return (QUALITY * quality(text) if ways.quality else 0.0) - pushed
