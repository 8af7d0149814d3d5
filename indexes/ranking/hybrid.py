"""Retrieval: passages are found by their words (BM25) and, with an embedding model, scored by their meaning as well."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes.passage_index import Index, build_searchable_text
from indexes.ranking.compressed_vectors import CompressedVectors
from indexes.ranking.rankings import RankedNumbers, Rows, sort_best_first
from indexes.ranking.vectors import Embedder, Vectors, combine_vectors
from indexes.text.languages import WeightedText
from schemas.records import Hit, Passage, Plan
from schemas.tuning import RetrievalTuning

log = logging.getLogger("convagent")
USUAL = RetrievalTuning()


@dataclass(frozen=True, slots=True)
class HybridRetriever:
    """Fusion of words and meaning: the share of the best word score, plus the weighted cosine.

    Of every passage where the index has vectors; where these are compressed, of the passages found by words and of as
    many that are nearest in meaning; else of the first `rerank_depth`, with the rest behind them.
    """

    index: Index
    embedder: Embedder | None = None  # None: words alone
    vectors: Vectors | CompressedVectors | None = None  # a row a passage, by its number
    tuning: RetrievalTuning = USUAL
    rows: Rows | None = None  # the passages that are searched; None for all

    def find(
        self, words: Sequence[WeightedText], meaning: Sequence[WeightedText], k: int, turn: str = ""
    ) -> tuple[Hit, ...]:
        """The `k` best passages, scores strictly decreasing.

        Texts come with what their words weigh, or with what their vectors weigh in their sum. `turn` is the turn with
        its conversation, for an encoder that was taught such texts.
        """
        meant = [(text, weight) for text, weight in meaning if text.strip()]
        depth = max(k, self.tuning.first_stage_depth) if self.embedder and meant else k
        ranked = self.index.rank(self.index.weigh(words), depth, self.rows)
        if self.embedder and meant:
            best = max(ranked[0][1], 1e-9) if ranked else 1.0
            shares = [(number, score / best) for number, score in ranked]
            ranked = self._fuse(self.embedder, shares, self._embed_query(meant, turn), k)
        return self.index.to_hits(ranked[:k])

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        return self.index.read(ids)

    @property
    def _cosine_weight(self) -> float:
        return self.tuning.cosine_weight / (self.embedder.spread if self.embedder else 1.0)

    def _embed_query(self, meant: Sequence[WeightedText], turn: str) -> Vectors:
        assert self.embedder
        query = combine_vectors(self.embedder.embed, meant)
        if turn and (encode := self.embedder.encode_turn):
            share = self.tuning.encoder_share
            query = (1 - share) * query + share * encode(turn).vector
        return query

    def _fuse(self, embedder: Embedder, shares: RankedNumbers, query: Vectors, k: int) -> RankedNumbers:
        if self.vectors is None:
            return self._rerank_top(embedder, shares, query)
        if not isinstance(self.vectors, np.ndarray):
            return self._score_nearest(self.vectors, shares, query, k)
        scores = self._cosine_weight * (self.vectors @ query).astype(np.float64)
        for number, share in shares:
            scores[number] += share
        numbers = range(len(scores)) if self.rows is None else np.flatnonzero(self.rows).tolist()
        return sort_best_first((number, float(scores[number])) for number in numbers)

    def _score_nearest(
        self, vectors: CompressedVectors, shares: RankedNumbers, query: Vectors, k: int
    ) -> RankedNumbers:
        """The first `k` are those of all passages, as far as the nearest are found: all others have a cosine alone."""
        numbers, cosines = vectors.find_nearest(query, k, self.rows)
        cosine_of = dict(zip(numbers.tolist(), cosines.tolist(), strict=True))
        others = np.array([number for number, _ in shares if number not in cosine_of], dtype=np.int64)
        cosine_of |= zip(others.tolist(), vectors.score(others, query).tolist(), strict=True)
        share_of, weight = dict(shares), self._cosine_weight
        return sort_best_first((number, share_of.get(number, 0.0) + weight * cos) for number, cos in cosine_of.items())

    def _rerank_top(self, embedder: Embedder, shares: RankedNumbers, query: Vectors) -> RankedNumbers:
        top, rest = shares[: self.tuning.rerank_depth], shares[self.tuning.rerank_depth :]
        passages = self.index.read(self.index.get_ids([number for number, _ in top]))
        cosines = embedder.embed([build_searchable_text(passage) for passage in passages]) @ query if top else ()
        weight = self._cosine_weight
        fused = ((number, share + weight * float(cos)) for (number, share), cos in zip(top, cosines, strict=True))
        return [*sort_best_first(fused), *rest]


def open_retriever(index: Index, embedder: Embedder | None, plan: Plan = Plan()) -> HybridRetriever:
    vectors = own_vectors(index, embedder) if embedder else None
    return HybridRetriever(index, embedder, vectors, plan.tuning.retrieval)


def own_vectors(index: Index, embedder: Embedder) -> Vectors | CompressedVectors | None:
    """The vectors that an index has of this embedding model, compressed if they are so; None where it has none."""
    info = index.vector_info
    if info is None:
        return None
    if info.digest != embedder.digest:
        log.info("%s has vectors of %s; those of %s are made as needed", index.directory, info.model, embedder.name)
        return None
    return index.compressed_vectors if info.compressed else index.vectors
