"""Rescoring what BM25 found by query likelihood with Dirichlet smoothing, with the statistics of the whole collection.

Source: Zhai and Lafferty, SIGIR 2001; what is the same for all passages is left out.
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from indexes.text.analysis import stems


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Of a whole collection."""

    passages: int
    words: int  # occurrences of all of them
    passages_with: Mapping[str, int]  # by word: how many passages hold it
    times: Mapping[str, int]  # by word: how often it occurs

    @classmethod
    def of(cls, texts: Iterable[str]) -> "CollectionStatistics":
        """Counted over the texts of all passages."""
        counting = StatisticsCounter()
        for text in texts:
            counting.add(text)
        return counting.statistics()


class StatisticsCounter:
    """Statistics in the making, text by text. With `wanted`, those of these words alone, in as little memory."""

    def __init__(self, wanted: Container[str] | None = None) -> None:
        self._wanted = wanted
        self._passages, self._words = 0, 0
        self._held: Counter[str] = Counter()
        self._times: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count a passage's text."""
        words = stems(text)
        self._passages += 1
        self._words += len(words)
        counted = words if self._wanted is None else [word for word in words if word in self._wanted]
        self._times.update(counted)
        self._held.update(set(counted))

    def statistics(self) -> CollectionStatistics:
        """What was counted so far."""
        return CollectionStatistics(self._passages, self._words, self._held, self._times)


ScoreFunction = Callable[[Mapping[str, float], Sequence[str]], float]  # weights of query words, a passage's words


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """The log-likelihood of the query in a passage's language model, smoothed by the collection's with `mu` words."""

    statistics: CollectionStatistics
    mu: float = 1000.0

    def __call__(self, weights: Mapping[str, float], words: Sequence[str]) -> float:
        """The log-likelihood, less that of a passage of length 0; words that the collection lacks count nothing."""
        counted = Counter(words)
        known = self.statistics
        score = 0.0
        for word, weight in weights.items():
            if in_all := known.times.get(word, 0):
                expected = self.mu * in_all / known.words
                score += weight * math.log(1 + counted[word] / expected)
                score += weight * math.log(self.mu / (len(words) + self.mu))
        return score
