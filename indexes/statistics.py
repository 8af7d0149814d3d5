"""Rescoring what Tantivy found, with the statistics of the whole collection.

Tantivy's BM25 is fixed at k1 1.2 and b 0.75, and knows a passage's length only in steps. Here are BM25 with free k1 and
b (Robertson and Zaragoza 2009, with the idf that Lucene and Tantivy use) and query likelihood with Dirichlet smoothing
(Zhai and Lafferty 2001, less what is the same for all passages).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
        held: Counter[str] = Counter()
        times: Counter[str] = Counter()
        passages = 0
        for text in texts:
            words = stems(text)
            times.update(words)
            held.update(set(words))
            passages += 1
        return cls(passages, times.total(), held, times)


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
