"""The best passages of a collection by BM25 with its own statistics, though it lies in parts that know only theirs.

Tantivy searches a part with that part's average length, and rounds as it adds. Both errors have bounds: what cannot be
among the best by them is left out, and passages whose rounded score they leave open are scored by their words. So
scores and ranking depend on the collection alone, not on its parts (docs/adr/0028-sharded-indexes.md).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from indexes.ranking.bm25 import ROUNDING, CollectionSize, WeighedTerms

DECIMALS = 4  # scores are rounded to steps of 0.0001, so that ties break the same way everywhere
SPARE = 100  # passages that a part is asked for beyond its share
DEEPER = 4  # times as many, where those were not enough
ROUNDINGS_ALONE, ROUNDINGS_IN_PART = 2, 24  # of a term's score that the exact one may not have, at most

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]  # of each passage, by its number, whether it is searched
RankedNumbers = list[tuple[int, float]]  # numbers of passages with their scores, best first
Frequencies = Mapping[str, int]  # by term, how many passages have it


class Part(Protocol):
    """A part of a collection; its passages have numbers of its own."""

    def count_passages_with(self, terms: Sequence[str]) -> Frequencies:
        """How many of its passages have each term."""

    def find_candidates(self, weights: Mapping[str, float], depth: int) -> tuple[Numbers, Scores]:
        """Its best passages for weighted terms by its own statistics, best first; at most `depth`."""

    def score_by_words(self, numbers: Sequence[int], terms: WeighedTerms) -> list[float]:
        """The exact scores of some of its passages."""


ByPart = Mapping[int, Any]  # something of each of some parts, by their places from 0
Ask = Callable[[str, ByPart], ByPart]  # calls a method of parts at once, each with arguments of its own


@dataclass(frozen=True, slots=True)
class Collection:
    """Passages that were dealt out in turn: of n parts, part p has the passages p, p + n, p + 2n and so on."""

    ask: Ask
    sizes: tuple[CollectionSize, ...]  # of the parts
    whole: CollectionSize

    @classmethod
    def of_one(cls, part: Part, size: CollectionSize) -> "Collection":
        """A collection in one part."""
        return cls(
            lambda method, given: {place: getattr(part, method)(*given[place]) for place in given}, (size,), size
        )

    def rank(self, weights: Mapping[str, float], k: int, rows: Rows | None = None) -> RankedNumbers:
        """The `k` best passages for weighted terms, of those in `rows` only. Equal scores are in corpus order."""
        counts = self.ask("count_passages_with", dict.fromkeys(range(len(self.sizes)), ([*weights],)))
        total = {term: sum(counts[part][term] for part in counts) for term in weights}
        terms = WeighedTerms.weigh(weights, total, self.whole)
        searches = {
            part: _PartSearch.prepare(terms, counts[part], size, self.whole)
            for part, size in enumerate(self.sizes)
            if any(counts[part].values())
        }
        return self._settle(self._find_candidates(searches, k, rows), terms, k) if searches else []

    def _find_candidates(self, searches: Mapping[int, "_PartSearch"], k: int, rows: Rows | None) -> "_Candidates":
        """All that may be among the best: a part is searched deeper until the rest of it cannot be."""
        depth = -(-k // len(self.sizes)) + SPARE if rows is None else self.whole.passages
        found: dict[int, _Candidates] = {}
        waiting = list(searches)
        while waiting:
            depths = {part: min(depth, self.sizes[part].passages + 1) for part in waiting}
            replies = self.ask("find_candidates", {part: (searches[part].boosts, depths[part]) for part in waiting})
            for part, (places, scores) in replies.items():
                numbers = places * len(self.sizes) + part
                candidates = searches[part].bound(numbers, scores, is_all=len(numbers) < depths[part])
                found[part] = candidates if rows is None else candidates.keep(rows[numbers])
            together = _Candidates.join([*found.values()])
            floor = together.find_floor(k)
            waiting = [part for part in found if found[part].ceiling >= floor]
            depth *= DEEPER
        return together.keep(together.highest >= floor)

    def _settle(self, candidates: "_Candidates", terms: WeighedTerms, k: int) -> RankedNumbers:
        """The best of the candidates by their exact scores: where the bounds leave one open, by its words."""
        steps, is_open = candidates.lowest.copy(), candidates.lowest != candidates.highest
        steps[is_open] = np.rint(self._score_by_words(candidates.numbers[is_open], terms) * 10**DECIMALS)
        order = np.lexsort((candidates.numbers, -steps))[:k]
        scores = (steps[order] / 10**DECIMALS).tolist()
        return list(zip(candidates.numbers[order].tolist(), scores, strict=True))

    def _score_by_words(self, numbers: Numbers, terms: WeighedTerms) -> Scores:
        places, parts = np.divmod(numbers, len(self.sizes))
        asked = {part: (places[parts == part].tolist(), terms) for part in np.unique(parts).tolist()}
        replies = self.ask("score_by_words", asked)
        scores = np.zeros(len(numbers))
        for part, exact in replies.items():
            scores[parts == part] = exact
        return scores


@dataclass(frozen=True, slots=True)
class _PartSearch:
    """How a part is searched so that its scores come near those of the whole collection, and how near they come.

    That of the whole collection is at least `least` times the part's, at most `most` times it and `further`, whose
    additions were rounded besides.
    """

    boosts: Mapping[str, float]  # of the terms that the part has
    least: float
    most: float
    further: float
    additions: int  # at most

    @classmethod
    def prepare(
        cls, terms: WeighedTerms, counts: Frequencies, size: CollectionSize, whole: CollectionSize
    ) -> "_PartSearch":
        """Boost each term by its idf in the whole collection and that in the part, which Tantivy multiplies with.

        Then only the average length is another: in tf / (tf + k1 (1 - b + b length / average)), that changes a score by
        no more than the ratio of the averages, whatever the term frequency and the length.
        """
        idf = {term: size.compute_idf(count) for term, count in counts.items() if count}
        boosts = {term: terms.weights[term] * float(terms.idf[term] / own) if own else 0.0 for term, own in idf.items()}
        further = sum(terms.most_for(term) for term, own in idf.items() if not own)  # all of its passages have the term
        ratio = whole.average_length / size.average_length
        error = ROUNDING * (ROUNDINGS_ALONE if size == whole else ROUNDINGS_IN_PART)
        return cls(boosts, min(1, ratio) * (1 - error), max(1, ratio) * (1 + error), further, len(idf) - 1)

    def bound(self, numbers: Numbers, scores: Scores, *, is_all: bool) -> "_Candidates":
        """What the part found. `is_all`: nothing else in it has any of the terms."""
        error = self.additions * np.spacing(scores.astype(np.float32)).astype(np.float64) / 2
        lowest = np.rint((scores - error) * self.least * 10**DECIMALS)
        highest = np.rint(((scores + error) * self.most + self.further) * 10**DECIMALS)
        return _Candidates(numbers, lowest, highest, -math.inf if is_all else float(highest[-1]))


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Passages that may be among the best; their scores are in steps of rounding."""

    numbers: Numbers
    lowest: Scores  # that the exact score can be
    highest: Scores
    ceiling: float  # the highest score of any other passage; -inf: there is none

    @classmethod
    def join(cls, found: Sequence["_Candidates"]) -> "_Candidates":
        """The candidates of several parts."""
        numbers = np.concatenate([each.numbers for each in found])
        lowest, highest = (
            np.concatenate(scores) for scores in zip(*((c.lowest, c.highest) for c in found), strict=True)
        )
        return cls(numbers, lowest, highest, max(each.ceiling for each in found))

    def keep(self, wanted: npt.NDArray[np.bool_]) -> "_Candidates":
        """Those of them that are wanted."""
        return _Candidates(self.numbers[wanted], self.lowest[wanted], self.highest[wanted], self.ceiling)

    def find_floor(self, k: int) -> float:
        """The score below which no passage is among the best `k`."""
        return float(np.partition(self.lowest, -k)[-k]) if len(self.lowest) >= k else 0.0
