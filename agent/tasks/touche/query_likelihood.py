"""Query likelihood with Dirichlet smoothing, which rescores what BM25 found with statistics of the whole collection.

Source: Zhai and Lafferty, SIGIR 2001. Terms that are the same for all passages are left out.
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from indexes.text.analysis import extract_stems


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Word counts of a whole collection. Words are stems."""

    passages: int
    words: int  # occurrences of all words
    passages_with: Mapping[str, int]  # by word, how many passages contain it
    times: Mapping[str, int]  # by word, how often it occurs

    @classmethod
    def count(cls, texts: Iterable[str]) -> "CollectionStatistics":
        """Count the words of the texts of all passages."""
        counter = StatisticsCounter()
        for text in texts:
            counter.add_text(text)
        return counter.statistics


class StatisticsCounter:
    """Counts the words of a collection, text by text. With `wanted`, it counts only these words, to save memory."""

    def __init__(self, wanted: Container[str] | None = None) -> None:
        self._wanted = wanted
        self._passages, self._words = 0, 0
        self._passages_with: Counter[str] = Counter()
        self._times: Counter[str] = Counter()

    def add_text(self, text: str) -> None:
        """Count a passage's text."""
        words = extract_stems(text)
        self._passages += 1
        self._words += len(words)
        counted = words if self._wanted is None else [word for word in words if word in self._wanted]
        self._times.update(counted)
        self._passages_with.update(set(counted))

    @property
    def statistics(self) -> CollectionStatistics:
        """The counts so far."""
        return CollectionStatistics(self._passages, self._words, self._passages_with, self._times)


ScoreFunction = Callable[[Mapping[str, float], Sequence[str]], float]  # weights of query words, a passage's words


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """The log-likelihood of the query in a passage's language model, smoothed by the collection's with `mu` words."""

    statistics: CollectionStatistics
    mu: float = 1000.0

    def __call__(self, weights: Mapping[str, float], words: Sequence[str]) -> float:
        """The log-likelihood, less that of a passage of length 0. Words that are not in the collection are ignored."""
        counted = Counter(words)
        collection = self.statistics
        score = 0.0
        for word, weight in weights.items():
            if times := collection.times.get(word, 0):
                expected = self.mu * times / collection.words
                score += weight * math.log(1 + counted[word] / expected)
                score += weight * math.log(self.mu / (len(words) + self.mu))
        return score
