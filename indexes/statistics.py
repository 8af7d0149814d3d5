"""Rescoring what Tantivy found, with the statistics of the whole collection.

Tantivy's BM25 is fixed at k1 1.2 and b 0.75, and knows a passage's length only in steps. Here are BM25 with free k1 and
b (Robertson and Zaragoza 2009, with the idf that Lucene and Tantivy use) and query likelihood with Dirichlet smoothing
(Zhai and Lafferty 2001, less what is the same for all passages).
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from indexes.words import stems


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of a whole collection."""

    passages: int
    words: int  # occurrences of all of them
    passages_with: Mapping[str, int]  # by word: how many passages hold it
    times: Mapping[str, int]  # by word: how often it occurs

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Statistics":
        """Counted over the texts of all passages."""
        counting = Counting()
        for text in texts:
            counting.add(text)
        return counting.statistics()


class Counting:
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

    def statistics(self) -> Statistics:
        """What was counted so far."""
        return Statistics(self._passages, self._words, self._held, self._times)


Score = Callable[[Mapping[str, float], Sequence[str]], float]  # weights of query words, a passage's words


@dataclass(frozen=True, slots=True)
class Bm25:
    """Free in how soon a repeated word counts no more (`k1`), and in how much a long passage is held back (`b`)."""

    statistics: Statistics
    k1: float = 0.9
    b: float = 0.4

    def __call__(self, weights: Mapping[str, float], words: Sequence[str]) -> float:
        """The score of a passage; 0 where it holds no word of the query."""
        counted = Counter(words)
        known = self.statistics
        length = len(words) / (known.words / known.passages)
        score = 0.0
        for word, weight in weights.items():
            if times := counted[word]:
                held = known.passages_with.get(word, 0)
                idf = math.log(1 + (known.passages - held + 0.5) / (held + 0.5))
                score += weight * idf * times * (self.k1 + 1) / (times + self.k1 * (1 - self.b + self.b * length))
        return score


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """The log-likelihood of the query in a passage's language model, smoothed by the collection's with `mu` words."""

    statistics: Statistics
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
