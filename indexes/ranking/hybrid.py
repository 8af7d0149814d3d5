"""Retrieval: passages are found by their words (BM25) and, with an embedding model, scored by their meaning as well."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes.passage_index import Index, is_english
from indexes.ranking.compressed_vectors import CompressedVectors
from indexes.ranking.rankings import Rows, sort_best_first
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
        embedder = self.embedder if meant else None
        depth = max(k, self.tuning.first_stage_depth) if embedder else k
        ranked = self.index.rank(self.index.weigh(words), depth, self.rows)
        if embedder:
            best = max(ranked[0][1], 1e-9) if ranked else 1.0
            share_of = {number: score / best for number, score in ranked}
            numbers, cosines = self._compare(embedder, list(share_of), self._embed_query(embedder, meant, turn), k)
            weight, compared = self.tuning.cosine_weight / embedder.spread, zip(numbers, cosines, strict=True)
            fused = sort_best_first((number, share_of.get(number, 0.0) + weight * cos) for number, cos in compared)
            ranked = [*fused, *list(share_of.items())[len(fused) :]]
        return self.index.to_hits(ranked[:k])

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        return self.index.read(ids)

    def _embed_query(self, embedder: Embedder, meant: Sequence[WeightedText], turn: str) -> Vectors:
        takes_questions = self.tuning.takes_questions and is_english(self.index.languages)
        query = combine_vectors(embedder.embedding_questions(takes_questions), meant)
        if turn and (encode := embedder.encode_turn):
            share = self.tuning.encoder_share
            query = (1 - share) * query + share * encode(turn).vector
        return query

    def _compare(
        self, embedder: Embedder, ranked: Sequence[int], query: Vectors, k: int
    ) -> tuple[Sequence[int], Sequence[float]]:
        """Passages and their cosines with the query: all that are `ranked` or more, or the first of these."""
        if self.vectors is None:
            top = ranked[: self.tuning.rerank_depth]
            return top, (embedder.embed(self.index.read_texts(top)) @ query).tolist() if top else []
        numbers = np.arange(len(self.index)) if self.rows is None else np.flatnonzero(self.rows)
        if isinstance(self.vectors, np.ndarray):
            return numbers.tolist(), (self.vectors @ query)[numbers].tolist()
        if self.rows is None:
            numbers = np.union1d(self.vectors.find_candidates(query, k), np.array(ranked, dtype=np.int64))
        return numbers.tolist(), self.vectors.score(numbers, query).tolist()


def open_retriever(index: Index, embedder: Embedder | None, plan: Plan = Plan()) -> HybridRetriever:
    vectors = own_vectors(index, embedder) if embedder else None
    return HybridRetriever(index, embedder, vectors, plan.tuning.retrieval)


def own_vectors(index: Index, embedder: Embedder) -> Vectors | CompressedVectors | None:
    """The vectors that an index has of this embedding model, compressed if they are so; None where it has none."""
    if index.vector_infos and index.vector_infos[0].digest != embedder.digest:
        other = index.vector_infos[0].model
        log.info("%s has vectors of %s; those of %s are made as needed", index.directory, other, embedder.name)
        return None
    return index.compressed_vectors or index.vectors
