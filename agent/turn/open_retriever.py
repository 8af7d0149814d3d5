"""Opening what finds passages: an index, and the list of stages that rank its passages."""

import logging
from pathlib import Path

from agent.models.embedding.index_vectors import cache_vectors
from agent.models.embedding.registry import open_embedder
from indexes.open_index import open_index
from indexes.passage_index import Index
from indexes.ranking.compressed_vectors import NearestVectors
from indexes.ranking.hybrid import Bm25Stage, CosineStage, HybridRetriever, RescoringStage, Stage
from indexes.ranking.scorers import CollectionStatistics, Dirichlet
from indexes.ranking.vectors import Embedder, Vectors
from schemas.records import Plan

log = logging.getLogger("convagent")


def open_retriever_in(directory: Path | str, embedder: str | None = None) -> HybridRetriever:
    """A retriever over an index directory. `embedder` is a name; without one, `minilm` where it is installed.

    Raises `MissingError` where there is no such index or embedding model.
    """
    model = open_embedder(embedder)
    return open_retriever(open_index(Path(directory)), model and cache_vectors(model))


def open_retriever(index: Index, embedder: Embedder | None, plan: Plan = Plan()) -> HybridRetriever:
    """The stages of retrieval over an index, in their order. One more stage is added here."""
    tuning = plan.tuning.retrieval
    stages: list[Stage] = [Bm25Stage(index, tuning.first_stage_depth if embedder else 0)]
    if plan.scorer == "dirichlet":
        log.info("Counting the words of %d passages for --scorer %s", len(index), plan.scorer)
        stages.append(
            RescoringStage(index, Dirichlet(CollectionStatistics.count(index.iterate_texts()), tuning.dirichlet_mu))
        )
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
