"""The passage-search tool: LangChain's tool interface over the passage index."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg
from langsmith import tracing_context
from pydantic import BaseModel, Field

from agent.turn.open_retriever import open_retriever_in
from indexes.text.analysis import WeightedText
from schemas.records import Hit

SNIPPET_CHARACTERS = 600  # characters of a passage that a model sees in the tool's reply


class SearchArguments(BaseModel):
    """What a model fills in to call the tool; `more`, `meaning` and `turn` are for callers that know more.

    `more` are further texts, each with the weight of its words; `meaning` is what is meant, with weights (default: the
    query); `turn` is the turn with its conversation, as `compose_conversation` writes it.
    """

    query: str = Field(description="What to look for, in plain words")
    more: Annotated[list[tuple[str, float]], InjectedToolArg] = []
    meaning: Annotated[list[tuple[str, float]], InjectedToolArg] = []
    turn: Annotated[str, InjectedToolArg] = ""
    k: int = Field(default=5, ge=1, le=1000, description="How many passages to return")


class PassageSearch(BaseTool):
    """Searches the passages of one index. The reply is text for a model; the artifact is the tuple of hits.

    Called by itself it is never traced, whatever the environment says: nothing leaves the machine.
    """

    name: str = "passage_search"
    description: str = "Search the indexed passages. Returns the best ones with their ids, most relevant first."
    args_schema: Any = SearchArguments
    response_format: Any = "content_and_artifact"
    retriever: Any  # HybridRetriever

    @classmethod
    def from_index(cls, directory: Path | str, embedder: str | None = None) -> "PassageSearch":
        """The tool for an index directory; `embedder` and the errors are those of `open_retriever_in`."""
        return cls(retriever=open_retriever_in(directory, embedder))

    def run(self, *arguments: Any, **settings: Any) -> Any:
        with tracing_context(enabled=False):
            return super().run(*arguments, **settings)

    async def arun(self, *arguments: Any, **settings: Any) -> Any:
        with tracing_context(enabled=False):
            return await super().arun(*arguments, **settings)

    def _run(
        self,
        query: str,
        more: Sequence[WeightedText] = (),
        meaning: Sequence[WeightedText] = (),
        turn: str = "",
        k: int = 5,
    ) -> tuple[str, tuple[Hit, ...]]:
        hits = self.retriever.find([(query, 1.0), *more], meaning or [(query, 1.0)], k, turn)
        shown = self.retriever.read([hit.id for hit in hits[:5]])
        text = "\n\n".join(f"[{passage.id}] {passage.text[:SNIPPET_CHARACTERS]}" for passage in shown)
        return text or "Nothing was found.", hits
