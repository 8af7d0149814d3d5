"""Opening what finds passages: an index, and an embedding model where there is one."""

import logging
from dataclasses import replace
from pathlib import Path

from agent.models.embedding.index_vectors import cache_vectors
from agent.models.embedding.registry import open_embedder
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import HybridRetriever
from indexes.ranking.scorers import CollectionStatistics, Dirichlet, ScoreFunction
from indexes.ranking.vectors import Embedder
from schemas.records import Plan

log = logging.getLogger("convagent")


def open_retriever_in(directory: Path | str, embedder: str | None = None) -> HybridRetriever:
    """A finder over an index directory; `embedder` is a name as `open_embedder` has it, without one `minilm` if there.

    Raises `MissingError` where there is no such index or embedding model.
    """
    model = open_embedder(embedder)
    return open_retriever(PassageIndex(Path(directory)), model and cache_vectors(model))


def open_retriever(index: PassageIndex, embedder: Embedder | None, plan: Plan = Plan()) -> HybridRetriever:
    """An index with an embedding model, or without. The vectors of passages are the index's own, or made as needed."""
    retriever = HybridRetriever(index, score=_make_scorer(index, plan))
    if embedder is None:
        return retriever
    about = index.vector_info
    if about is not None and about.digest != embedder.digest:
        log.info("%s has vectors of %s; those of %s are made as needed", index.directory, about.model, embedder.name)
    own = about is not None and about.digest == embedder.digest
    return replace(retriever, embed=embedder.embed, vectors=index.vectors if own else None)


def _make_scorer(index: PassageIndex, plan: Plan) -> ScoreFunction | None:
    """What Tantivy's hits are scored with instead; it has to know the words of the whole collection."""
    if plan.scorer == "bm25":
        return None
    log.info("Counting the words of %d passages for --scorer %s", len(index), plan.scorer)
    return Dirichlet(CollectionStatistics.count(index.iterate_texts()))
