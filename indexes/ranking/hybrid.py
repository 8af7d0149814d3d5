"""Finding passages by their words and by their meaning.

Words are BM25 over the whole index. Meaning is the cosine with what is looked for: of every passage where the vectors
of all are there, else of the first hundred that the words find.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.passage_index import DECIMALS, PassageIndex, RankedNumbers, WeightedText, searchable_text, weight_stems
from indexes.ranking.scorers import ScoreFunction
from indexes.ranking.vectors import Embed, Vectors, combine_vectors
from indexes.text.analysis import stems
from schemas.records import Hit, Passage

COSINE_WEIGHT = 4.0  # what the cosine weighs beside the words, whose best passage has 1 (docs/log.md)
RERANK_DEPTH = 100  # passages whose meaning is looked at where not all vectors are there
FIRST_STAGE_DEPTH = 1000  # passages found by words that meaning may move up, however few are asked for


@dataclass(frozen=True, slots=True)
class HybridRetriever:
    """An index, and what turns texts into vectors where there is a model that can. Without one, words alone count."""

    index: PassageIndex
    embed: Embed | None = None
    vectors: Vectors | None = None  # of every passage, by its number
    score: ScoreFunction | None = None  # in the place of Tantivy's BM25

    def find(self, words: Sequence[WeightedText], meaning: Sequence[WeightedText], k: int) -> tuple[Hit, ...]:
        """The `k` best passages, scores strictly decreasing.

        `words` and `meaning` are texts with their weights: what a text's words weigh, and what its vector weighs in
        the sum that is compared with those of passages.
        """
        wanted = self.embed is not None and any(text.strip() for text, _ in meaning)
        ranked = self._by_words(words, max(k, FIRST_STAGE_DEPTH) if wanted else k)
        if self.embed is not None and wanted:
            ranked = self._with_meaning(ranked, combine_vectors(self.embed, meaning), self.embed)
        return self.index.hits(ranked[:k])

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        """Passages by exact id."""
        return self.index.read(ids)

    def _by_words(self, words: Sequence[WeightedText], k: int) -> RankedNumbers:
        weights = weight_stems(words)
        return self._rescored(self.index.rank(weights, k), weights)

    def _rescored(self, ranked: RankedNumbers, weights: dict[str, float]) -> RankedNumbers:
        if self.score is None:
            return ranked
        words = [stems(text) for text in self._texts(ranked)]
        return sort_best_first(
            (number, self.score(weights, held)) for (number, _), held in zip(ranked, words, strict=True)
        )

    def _texts(self, ranked: RankedNumbers) -> list[str]:
        passages = self.index.read(self.index.ids([number for number, _ in ranked]))
        return [searchable_text(passage) for passage in passages]

    def _with_meaning(self, ranked: RankedNumbers, meant: Vectors, embed: Embed) -> RankedNumbers:
        shares = _normalise_scores(ranked)
        if self.vectors is not None:
            scores = COSINE_WEIGHT * (self.vectors @ meant).astype(np.float64)
            for number, share in shares:
                scores[number] += share
            return sort_best_first((number, float(score)) for number, score in enumerate(scores))
        top, rest = shares[:RERANK_DEPTH], shares[RERANK_DEPTH:]
        cosines = embed(self._texts(top)) @ meant if top else ()
        both = (
            (number, share + COSINE_WEIGHT * float(cosine))
            for (number, share), cosine in zip(top, cosines, strict=True)
        )
        return [*sort_best_first(both), *rest]


def _normalise_scores(ranked: RankedNumbers) -> RankedNumbers:
    """Scores as shares of the best one; log-likelihoods, which may be below 0, from the worst one on."""
    best = ranked[0][1] if ranked else 1.0
    worst = min(0.0, ranked[-1][1] if ranked else 0.0)
    return [(number, (score - worst) / max(best - worst, 1e-9)) for number, score in ranked]


def sort_best_first(scored: Iterable[tuple[int, float]]) -> RankedNumbers:
    """Best first, ties in corpus order, whatever the last bits of a sum are."""
    return sorted(scored, key=lambda pair: (-round(pair[1], DECIMALS), pair[0]))
