"""Searching twice: the query is told the words of the passages that it finds first, or several lists become one.

RM3 (Abdul-Jaleel et al., TREC 2004): a relevance model over the first passages, interpolated with the query.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from indexes.passages import strictly_decreasing
from schemas.records import Hit

TERMS = 20  # words that join
CONSTANT = 60  # of reciprocal rank fusion
OWN = 0.7  # what the query's own words weigh together; the new ones have the rest


def expanded(weights: Mapping[str, float], found: Sequence[tuple[float, Sequence[str]]]) -> dict[str, float]:
    """Weights of the query's stems and of the passages' most likely ones, which sum to what they summed to before.

    `found` are passages as (score, stems), best first; a passage counts by its score's share.
    """
    total = sum(weights.values())
    best = max((score for score, _ in found), default=0.0)
    model: Counter[str] = Counter()
    for score, words in found:
        for word, times in Counter(words).items():
            model[word] += math.exp(score - best) * times / len(words)  # type: ignore[assignment]
    top = model.most_common(TERMS)
    mass = sum(likelihood for _, likelihood in top) or 1.0
    joined = {word: OWN * weight for word, weight in weights.items()}
    for word, likelihood in top:
        joined[word] = joined.get(word, 0.0) + (1 - OWN) * total * likelihood / mass
    return joined


def fused(lists: Sequence[Sequence[Hit]], k: int) -> tuple[Hit, ...]:
    """The `k` best of several rankings by their ranks; a hit that is first in one list scores about 1 for it."""
    ranked = reciprocal_rank_fusion([[hit.id for hit in hits] for hits in lists])
    return strictly_decreasing((id, CONSTANT * score) for id, score in ranked[:k])


def reciprocal_rank_fusion(lists: Sequence[Sequence[str]], constant: int = CONSTANT) -> list[tuple[str, float]]:
    """Ids of several rankings, best first, by the sum of 1 / (constant + rank) (Cormack, Clarke, Buettcher 2009)."""
    scores: dict[str, float] = {}
    for ranking in lists:
        for rank, id in enumerate(ranking, start=1):
            scores[id] = scores.get(id, 0.0) + 1.0 / (constant + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])
