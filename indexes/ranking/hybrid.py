"""Finding passages by their words and by their meaning.

Words are scored by BM25 over the whole index. Meaning is scored by the cosine with the query's vector: for every
passage if the index has vectors, or else for the first hundred passages that the words find.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.passage_index import (
    DECIMALS,
    PassageIndex,
    RankedNumbers,
    WeightedText,
    build_searchable_text,
    weight_stems,
)
from indexes.ranking.scorers import ScoreFunction
from indexes.ranking.vectors import Embed, Vectors, combine_vectors
from indexes.text.analysis import extract_stems
from schemas.records import Hit, Passage

COSINE_WEIGHT = 4.0  # of the cosine; the best passage by words scores 1 (docs/log.md)
RERANK_DEPTH = 100  # passages that are scored by meaning if the index has no vectors
FIRST_STAGE_DEPTH = 1000  # passages found by words that meaning may move up, even if fewer are wanted


@dataclass(frozen=True, slots=True)
class HybridRetriever:
    """A retriever by words, and by meaning too if it has an embedding function."""

    index: PassageIndex
    embed: Embed | None = None
    vectors: Vectors | None = None  # one for each passage, by its number
    score: ScoreFunction | None = None  # in place of Tantivy's BM25

    def find(self, words: Sequence[WeightedText], meaning: Sequence[WeightedText], k: int) -> tuple[Hit, ...]:
        """The `k` best passages, with strictly decreasing scores.

        `words` and `meaning` are texts with weights: of each word of a text, and of its vector in the sum that is
        compared with the passages' vectors.
        """
        uses_meaning = self.embed is not None and any(text.strip() for text, _ in meaning)
        ranked = self._rank_by_words(words, max(k, FIRST_STAGE_DEPTH) if uses_meaning else k)
        if self.embed is not None and uses_meaning:
            ranked = self._add_meaning(ranked, combine_vectors(self.embed, meaning), self.embed)
        return self.index.to_hits(ranked[:k])

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        """Passages by exact id."""
        return self.index.read(ids)

    def _rank_by_words(self, words: Sequence[WeightedText], k: int) -> RankedNumbers:
        weights = weight_stems(words)
        return self._rescore(self.index.rank(weights, k), weights)

    def _rescore(self, ranked: RankedNumbers, weights: dict[str, float]) -> RankedNumbers:
        if self.score is None:
            return ranked
        passage_stems = [extract_stems(text) for text in self._read_texts(ranked)]
        return sort_best_first(
            (number, self.score(weights, held)) for (number, _), held in zip(ranked, passage_stems, strict=True)
        )

    def _read_texts(self, ranked: RankedNumbers) -> list[str]:
        passages = self.index.read(self.index.get_ids([number for number, _ in ranked]))
        return [build_searchable_text(passage) for passage in passages]

    def _add_meaning(self, ranked: RankedNumbers, query_vector: Vectors, embed: Embed) -> RankedNumbers:
        shares = _normalise_scores(ranked)
        if self.vectors is not None:
            scores = COSINE_WEIGHT * (self.vectors @ query_vector).astype(np.float64)
            for number, share in shares:
                scores[number] += share
            return sort_best_first((number, float(score)) for number, score in enumerate(scores))
        top, rest = shares[:RERANK_DEPTH], shares[RERANK_DEPTH:]
        cosines = embed(self._read_texts(top)) @ query_vector if top else ()
        both = (
            (number, share + COSINE_WEIGHT * float(cosine))
            for (number, share), cosine in zip(top, cosines, strict=True)
        )
        return [*sort_best_first(both), *rest]


def _normalise_scores(ranked: RankedNumbers) -> RankedNumbers:
    """Scores as shares of the best one. If some are below 0, as log-likelihoods may be, the worst becomes 0."""
    best = ranked[0][1] if ranked else 1.0
    worst = min(0.0, ranked[-1][1] if ranked else 0.0)
    return [(number, (score - worst) / max(best - worst, 1e-9)) for number, score in ranked]


def sort_best_first(scored: Iterable[tuple[int, float]]) -> RankedNumbers:
    """Sort by rounded score, best first, and ties in corpus order."""
    return sorted(scored, key=lambda pair: (-round(pair[1], DECIMALS), pair[0]))
