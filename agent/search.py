"""The passage-search tool: LangChain's tool interface over the passage index, and how the flow calls it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool
from langsmith import tracing_context
from pydantic import BaseModel, Field

from agent.llm.seam import Listener, unheard
from indexes.passages import PassageIndex, Weighted
from schemas.records import Call, Hit, Passage, Query

# What the words of each part of a query weigh beside the person's own, which weigh 1 (docs/log.md).
CONTEXT, ANSWER, PREVIOUS = 0.5, 0.3, 0.05
SNIPPET = 600  # characters of a passage that a model sees in the tool's reply


class SearchArguments(BaseModel):
    """What a model fills in to call the tool; `more` is for callers that know what else is wanted."""

    query: str = Field(description="What to look for, in plain words")
    more: list[tuple[str, float]] = Field(default=[], description="Further texts, each with the weight of its words")
    k: int = Field(default=5, ge=1, le=1000, description="How many passages to return")


class PassageSearch(BaseTool):
    """Searches the passages of one index. The reply is text for a model; the artifact is the tuple of hits."""

    name: str = "passage_search"
    description: str = "Search the indexed passages. Returns the best ones with their ids, most relevant first."
    args_schema: Any = SearchArguments
    response_format: Any = "content_and_artifact"
    index: Any  # PassageIndex

    def _run(self, query: str, more: Sequence[Weighted] = (), k: int = 5) -> tuple[str, tuple[Hit, ...]]:
        hits = self.index.search([(query, 1.0), *more], k)
        shown = self.index.read([hit.id for hit in hits[:5]])
        return "\n\n".join(f"[{passage.id}] {passage.text[:SNIPPET]}" for passage in shown), hits


@dataclass(frozen=True, slots=True)
class Searcher:
    """The tool as the flow holds it: a query in, ranked hits out; and the texts of hits."""

    tool: PassageSearch
    k: int
    listen: Listener = unheard

    @classmethod
    def over(cls, index: PassageIndex, k: int = 1000, listen: Listener = unheard) -> "Searcher":
        return cls(PassageSearch(index=index), k, listen)

    def search(self, query: Query) -> tuple[Hit, ...]:
        """At most `k` hits, scores strictly decreasing; none where no word of the query is in the index."""
        if not self.k:
            return ()
        started = time.perf_counter()
        arguments = {"query": query.utterance, "more": _more(query), "k": self.k}
        call = {"name": self.tool.name, "type": "tool_call", "id": "search", "args": arguments}
        with tracing_context(enabled=False):  # whatever the environment says: nothing leaves the machine
            hits: tuple[Hit, ...] = self.tool.invoke(call).artifact
        seconds = round(time.perf_counter() - started, 4)
        self.listen(Call("search", "search", query.standalone, f"{len(hits)} passages", seconds=seconds))
        return hits

    def read(self, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """The passages of hits, in their order."""
        index: PassageIndex = self.tool.index
        return index.read([hit.id for hit in hits])


def _more(query: Query) -> list[Weighted]:
    """The rewrite counts only where a model wrote it: otherwise it is the utterance and the context over again."""
    unsaid = [(phrase, CONTEXT) for phrase in query.context] or [(query.standalone, CONTEXT)]
    return [*unsaid, (query.answer, ANSWER), (query.previous, PREVIOUS)]
