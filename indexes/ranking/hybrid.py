"""Retrieval as a list of stages: the first finds passages by their words, the others rescore and rerank them.

A stage gets the request and the ranking so far, and returns the next one. `agent/turn/retrieval.py` has the list;
a reranker is one more stage in it.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.passage_index import Index, build_searchable_text
from indexes.ranking.compressed_vectors import NearestVectors
from indexes.ranking.rankings import RankedNumbers, Rows, sort_best_first
from indexes.ranking.vectors import Embed, Embedder, EncodeTurn, Vectors, combine_vectors
from indexes.text.analysis import WeightedText
from schemas.records import Hit, Passage, Plan

log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is looked for: texts with what their words weigh, and texts with what their vectors weigh in their sum."""

    words: tuple[WeightedText, ...]
    meaning: tuple[WeightedText, ...]
    k: int  # passages wanted
    turn: str = ""  # the turn with its conversation, for an encoder that was taught such texts
    rows: Rows | None = None  # the passages that are searched; None for all


Stage = Callable[[SearchRequest, RankedNumbers], RankedNumbers]  # the passages of the stage before, best first


@dataclass(frozen=True, slots=True)
class HybridRetriever:
    index: Index
    stages: tuple[Stage, ...]
    rows: Rows | None = None  # the passages that are searched; None for all

    def find(
        self, words: Sequence[WeightedText], meaning: Sequence[WeightedText], k: int, turn: str = ""
    ) -> tuple[Hit, ...]:
        """The `k` best passages, scores strictly decreasing. The arguments are those of `SearchRequest`."""
        meant = tuple((text, weight) for text, weight in meaning if text.strip())
        request = SearchRequest(tuple(words), meant, k, turn, self.rows)
        ranked: RankedNumbers = []
        for stage in self.stages:
            ranked = stage(request, ranked)
        return self.index.to_hits(ranked[:k])

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        return self.index.read(ids)


@dataclass(frozen=True, slots=True)
class Bm25Stage:
    """The first stage: BM25 over all that is searched."""

    index: Index
    min_depth: int = 0  # passages that later stages may move up, however few are wanted

    def __call__(self, request: SearchRequest, _ranked: RankedNumbers) -> RankedNumbers:
        depth = max(request.k, self.min_depth) if request.meaning else request.k
        return self.index.rank(self.index.weigh(request.words), depth, request.rows)


@dataclass(frozen=True, slots=True)
class CosineStage:
    """Fusion of words and meaning: the share of the best word score, plus the weighted cosine.

    Of every passage where the index has vectors; where these are compressed, of the passages found by words and of as
    many that are nearest in meaning; else of the first `rerank_depth`, with the rest behind them.
    """

    index: Index
    embed: Embed
    vectors: Vectors | NearestVectors | None  # a row a passage, by its number
    weight: float  # of the cosine; the best passage by words has 1
    rerank_depth: int
    encode_turn: EncodeTurn | None = None
    turn_share: float = 0.0  # of what the taught encoder makes of the turn, in the vector that is searched with

    def __call__(self, request: SearchRequest, ranked: RankedNumbers) -> RankedNumbers:
        if not request.meaning:
            return ranked
        query = combine_vectors(self.embed, request.meaning)
        if request.turn and self.encode_turn:
            query = (1 - self.turn_share) * query + self.turn_share * self.encode_turn(request.turn).vector
        shares = _normalise_scores(ranked)
        if self.vectors is None:
            return self._rerank_top(shares, query)
        if not isinstance(self.vectors, np.ndarray):
            return self._score_nearest(self.vectors, shares, query, request)
        return self._score_all(self.vectors, shares, query, request.rows)

    def _score_all(self, vectors: Vectors, shares: RankedNumbers, query: Vectors, rows: Rows | None) -> RankedNumbers:
        scores = self.weight * (vectors @ query).astype(np.float64)
        for number, share in shares:
            scores[number] += share
        numbers = range(len(scores)) if rows is None else np.flatnonzero(rows).tolist()
        return sort_best_first((number, float(scores[number])) for number in numbers)

    def _score_nearest(
        self, vectors: NearestVectors, shares: RankedNumbers, query: Vectors, request: SearchRequest
    ) -> RankedNumbers:
        """The first `k` are those of `_score_all`, as far as the nearest are found: all others have a cosine alone."""
        numbers, cosines = vectors.find_nearest(query, request.k, request.rows)
        cosine_of = dict(zip(numbers.tolist(), cosines.tolist(), strict=True))
        others = np.array([number for number, _ in shares if number not in cosine_of], dtype=np.int64)
        cosine_of |= zip(others.tolist(), vectors.score(others, query).tolist(), strict=True)
        share_of = dict(shares)
        return sort_best_first(
            (number, share_of.get(number, 0.0) + self.weight * cosine) for number, cosine in cosine_of.items()
        )

    def _rerank_top(self, shares: RankedNumbers, query: Vectors) -> RankedNumbers:
        top, rest = shares[: self.rerank_depth], shares[self.rerank_depth :]
        passages = self.index.read(self.index.get_ids([number for number, _ in top]))
        cosines = self.embed([build_searchable_text(passage) for passage in passages]) @ query if top else ()
        fused = (
            (number, share + self.weight * float(cosine)) for (number, share), cosine in zip(top, cosines, strict=True)
        )
        return [*sort_best_first(fused), *rest]


def _normalise_scores(ranked: RankedNumbers) -> RankedNumbers:
    """Scores as shares of the best one. If some are below 0, as log-likelihoods may be, the worst becomes 0."""
    best = ranked[0][1] if ranked else 1.0
    worst = min(0.0, ranked[-1][1] if ranked else 0.0)
    return [(number, (score - worst) / max(best - worst, 1e-9)) for number, score in ranked]


def open_retriever(index: Index, embedder: Embedder | None, plan: Plan = Plan()) -> HybridRetriever:
    """The stages of retrieval over an index, in their order. One more stage is added here."""
    tuning = plan.tuning.retrieval
    stages: list[Stage] = [Bm25Stage(index, tuning.first_stage_depth if embedder else 0)]
    if embedder is not None:
        vectors = own_vectors(index, embedder)
        weights = (tuning.cosine_weight, tuning.rerank_depth)
        stages.append(CosineStage(index, embedder.embed, vectors, *weights, embedder.encode_turn, tuning.encoder_share))
    return HybridRetriever(index, tuple(stages))


def own_vectors(index: Index, embedder: Embedder) -> Vectors | NearestVectors | None:
    """The vectors that an index has of this embedding model, compressed if they are so; None where it has none."""
    info = index.vector_info
    if info is None:
        return None
    if info.digest != embedder.digest:
        log.info("%s has vectors of %s; those of %s are made as needed", index.directory, info.model, embedder.name)
        return None
    return index.vectors if index.compressed_info is None else index.compressed_vectors
