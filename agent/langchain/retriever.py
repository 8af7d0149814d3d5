"""The passages of an index as LangChain's documents."""

from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langsmith import tracing_context

from agent.turn.retrieval import open_retriever_in


class PassageRetriever(BaseRetriever):
    """Finds the `k` best passages of one index for a question, best first.

    The metadata of a document are `id`, `title`, `url` (empty where the passage has none) and `score` (higher is
    better, comparable within one question only). Called by itself, it is never traced: nothing leaves the machine.
    """

    retriever: Any  # HybridRetriever
    k: int = 5

    @classmethod
    def from_index(cls, directory: Path | str, embedder: str | None = None, k: int = 5) -> "PassageRetriever":
        """The retriever for an index directory; `embedder` and the errors are those of `open_retriever_in`."""
        return cls(retriever=open_retriever_in(directory, embedder), k=k)

    def invoke(self, *arguments: Any, **settings: Any) -> list[Document]:
        with tracing_context(enabled=False):
            return super().invoke(*arguments, **settings)

    async def ainvoke(self, *arguments: Any, **settings: Any) -> list[Document]:
        with tracing_context(enabled=False):
            return await super().ainvoke(*arguments, **settings)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        hits = self.retriever.find([(query, 1.0)], [(query, 1.0)], self.k)
        passages = self.retriever.read([hit.id for hit in hits])
        return [
            Document(
                passage.text,
                id=passage.id,
                metadata={"id": passage.id, "title": passage.title, "url": passage.url, "score": hit.score},
            )
            for hit, passage in zip(hits, passages, strict=True)
        ]
