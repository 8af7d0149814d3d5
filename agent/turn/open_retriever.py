"""Opening what finds passages: an index, and the list of stages that rank its passages."""

from pathlib import Path

from agent.models.embedding.registry import open_embedder
from indexes.index_vectors import cache_vectors
from indexes.ranking.hybrid import HybridRetriever, open_retriever
from indexes.sharding.sharded_index import open_index


def open_retriever_in(directory: Path | str, embedder: str | None = None) -> HybridRetriever:
    """A retriever over an index directory. `embedder` is a name; without one, `minilm` where it is installed.

    Raises `MissingError` where there is no such index or embedding model.
    """
    model = open_embedder(embedder)
    return open_retriever(open_index(Path(directory)), model and cache_vectors(model))
