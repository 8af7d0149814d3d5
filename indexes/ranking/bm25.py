"""BM25 of a passage by its words and the statistics of a whole collection, whoever holds the rest of it.

The formula and its 32-bit constants are Tantivy's (`query/bm25.rs`), so that it gives what Tantivy gives; the sum over
the terms alone is exact. Tantivy adds in 32 bits, in an order that depends on the other passages of a segment.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

K1, B = np.float32(1.2), np.float32(0.75)
ONE, HALF = np.float32(1), np.float32(0.5)
ROUNDING = 2.0**-24  # the relative error of one 32-bit operation, at most
ScoreWords = Callable[[Sequence[str]], float]


def _list_lengths() -> npt.NDArray[np.float32]:
    """The lengths that a byte stands for in Lucene and Tantivy: exact up to 40, from there with four binary digits."""
    above = (code if code < 8 else (8 | code & 7) << (code >> 3) - 1 for code in range(232))
    return np.array([*range(24), *(24 + length for length in above)], dtype=np.float32)


LENGTHS = _list_lengths()


@dataclass(frozen=True, slots=True)
class CollectionSize:
    """What of a collection decides all scores in it."""

    passages: int
    average_length: float  # words of a passage; a 32-bit float

    @classmethod
    def count(cls, passages: int, words: int) -> "CollectionSize":
        """The size of a collection of so many passages with so many words (stems)."""
        return cls(passages, float(np.float32(words) / np.float32(passages)))

    def compute_idf(self, frequency: int) -> np.float32:
        """The inverse document frequency of a term that so many passages have."""
        odds = (np.float32(self.passages - frequency) + HALF) / (np.float32(frequency) + HALF)
        return np.float32(math.log(ONE + odds))


@dataclass(frozen=True, slots=True)
class WeighedTerms:
    """The terms of a query that occur in a collection, and all that passages are scored for them by."""

    weights: Mapping[str, float]  # as the query has them
    idf: Mapping[str, np.float32]
    average_length: float

    @classmethod
    def weigh(
        cls, weights: Mapping[str, float], frequencies: Mapping[str, int], size: CollectionSize
    ) -> "WeighedTerms":
        """The terms of a query; `frequencies` say how many passages of the collection have each."""
        idf = {term: size.compute_idf(frequency) for term, frequency in frequencies.items() if frequency}
        return cls({term: weights[term] for term in idf}, idf, size.average_length)

    def most_for(self, term: str) -> float:
        """More than any passage gains by a term."""
        return float(self._factor(term))

    def open_scorer(self) -> ScoreWords:
        """What computes the score of a passage from its stems."""
        factors = {term: self._factor(term) for term in self.weights}
        norms = K1 * (ONE - B + B * LENGTHS / np.float32(self.average_length))

        def score(stems: Sequence[str]) -> float:
            norm = norms[np.searchsorted(LENGTHS, len(stems), side="right") - 1]
            counts = Counter(filter(factors.__contains__, stems))
            return math.fsum(
                factors[term] * (np.float32(count) / (np.float32(count) + norm)) for term, count in counts.items()
            )

        return score

    def _factor(self, term: str) -> np.float32:
        return self.idf[term] * (K1 + ONE) * np.float32(self.weights[term])


class _Explanation(msgspec.Struct):
    value: float
    description: str
    details: tuple["_Explanation", ...] = ()


def find_explained(explanation: str, name: str) -> float:
    """A number of a score that Tantivy explains, by how its description begins. Raises `LookupError`."""
    waiting = [msgspec.json.decode(explanation, type=_Explanation)]
    while waiting:
        part = waiting.pop()
        if part.description.startswith(name):
            return part.value
        waiting += part.details
    raise LookupError(f"Tantivy explains no {name}")
