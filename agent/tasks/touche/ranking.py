"""Ranking arguments for a question: query likelihood with Dirichlet smoothing, the organisers' baseline in both years.

Words find candidates (Tantivy's BM25), which are scored anew with the statistics of the whole collection. It was also
the core of the best runs (overviews of Touché 2020 and 2021); nothing that was measured on the track's own labels
speaks for more. Source: Zhai and Lafferty, SIGIR 2001. Words are stems, scores are in nats.
"""

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.ranking.rankings import sort_best_first
from indexes.text.analysis import extract_stems, weight_stems
from schemas.records import Hit

CANDIDATES = 3000  # arguments scored anew: three times what a run may hold
MU = 2000.0  # words of smoothing: Lucene's default; not tuned here


class CollectionStatistics:
    """How often words occur in a whole collection, counted text by text. Only `wanted` words are counted one by one."""

    def __init__(self, wanted: Container[str]) -> None:
        self._wanted = wanted
        self.words = 0  # occurrences of all words
        self.times: Counter[str] = Counter()  # by wanted word

    def add_text(self, text: str) -> None:
        """Count the words of one more text."""
        words = extract_stems(text)
        self.words += len(words)
        self.times.update(word for word in words if word in self._wanted)


def query_likelihood(
    weights: Mapping[str, float], words: Sequence[str], collection: CollectionStatistics, mu: float = MU
) -> float:
    """The log-likelihood of weighted words in a text's language model, smoothed by the collection's with `mu` words.

    What is the same for all texts is left out, and so are words that the collection does not have.
    """
    counted = Counter(words)
    return sum(
        weight * (math.log(1 + counted[word] * collection.words / (mu * times)) + math.log(mu / (len(words) + mu)))
        for word, weight in weights.items()
        if (times := collection.times[word])
    )


@dataclass(frozen=True, slots=True)
class Ranker:
    """An index of arguments, and how often the words of every query that will be asked occur in it."""

    index: PassageIndex
    statistics: CollectionStatistics

    def rank(self, question: str, k: int) -> tuple[Hit, ...]:
        """The `k` best arguments for a question, scores strictly decreasing."""
        weights = weight_stems([(question, 1.0)])
        numbers = [number for number, _ in self.index.rank(weights, CANDIDATES)]
        arguments = self.index.read(self.index.get_ids(numbers))
        texts = (extract_stems(build_searchable_text(argument)) for argument in arguments)
        scores = (query_likelihood(weights, words, self.statistics) for words in texts)
        return self.index.to_hits(sort_best_first(zip(numbers, scores, strict=True))[:k])
