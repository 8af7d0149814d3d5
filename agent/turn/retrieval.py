"""Retrieval for a turn: how the parts of a query are weighed, and the call of the passage-search tool."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg
from langsmith import tracing_context
from pydantic import BaseModel, Field

from agent.models.protocol import Listener, ignore_call
from agent.models.registry import open_embedder
from indexes.index_vectors import cache_vectors
from indexes.ranking.hybrid import HybridRetriever, open_retriever
from indexes.sharding.sharded_index import open_index
from indexes.text.analysis import extract_stems
from indexes.text.languages import WeightedText
from schemas.errors import format_count
from schemas.records import Call, Hit, Passage, Plan, Query
from schemas.tuning import Tuning


def open_retriever_in(directory: Path | str, embedder: str | None = None) -> HybridRetriever:
    """A retriever over an index directory. `embedder` is a name; without one, `minilm` where it is installed.

    Raises `MissingError` where there is no such index or embedding model.
    """
    model = open_embedder(embedder)
    return open_retriever(open_index(Path(directory)), model and cache_vectors(model))


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


PASSAGE_SEARCH = "passage_search"  # as models call it


class PassageSearch(BaseTool):
    """Searches the passages of one index. The reply is text for a model; the artifact is the tuple of hits.

    Called by itself it is never traced, whatever the environment says: nothing leaves the machine.
    """

    name: str = PASSAGE_SEARCH
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
        text = "\n\n".join(f"[{passage.id}] {' '.join(passage.text.split())[:SNIPPET_CHARACTERS]}" for passage in shown)
        return text or "Nothing was found.", hits


@dataclass(frozen=True, slots=True)
class Searcher:
    """The search of the flow, by the tool: a query in, ranked hits out; and the texts of hits."""

    retriever: HybridRetriever
    plan: Plan = Plan()
    listen: Listener = ignore_call

    def search(self, query: Query) -> tuple[Hit, ...]:
        """As many hits as are planned, scores strictly decreasing; none where nothing is found."""
        if not self.plan.retrieval_depth:
            return ()
        if "previous" not in self.plan.query:
            query = replace(query, previous_reply="")
        hits = self._call_tool(query)
        if not hits and query.earlier_utterances:  # a mere "Thank you" is about what was asked before
            hits = self._call_tool(replace(query, context=query.earlier_utterances))
        return hits

    def read(self, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """The passages of hits, in their order."""
        return self.retriever.read([hit.id for hit in hits])

    def _call_tool(self, query: Query) -> tuple[Hit, ...]:
        started = time.perf_counter()
        arguments = {"query": query.utterance, "turn": query.encoded_text, "k": self.plan.retrieval_depth}
        arguments |= {"more": weigh_words(query, self.plan.tuning), "meaning": weigh_meaning(query, self.plan.tuning)}
        call = {"name": PASSAGE_SEARCH, "type": "tool_call", "id": "search", "args": arguments}
        hits: tuple[Hit, ...] = PassageSearch(retriever=self.retriever).invoke(call).artifact
        seconds = round(time.perf_counter() - started, 4)
        self.listen(Call("search", "search", query.standalone, format_count(len(hits), "passage"), seconds=seconds))
        return hits


def weigh_words(query: Query, tuning: Tuning) -> list[WeightedText]:
    """Texts beside the utterance, with what their words weigh."""
    weights = tuning.retrieval
    context = [(phrase, weights.context_weight) for phrase in query.context]
    if query.rewrite or not context:
        context.append((query.standalone, weights.rewrite_weight if context else weights.context_weight))
    hyde = [(text, weights.hyde_weight / len(query.hypothetical_answers)) for text in query.hypothetical_answers]
    return [*context, *hyde, (query.previous_reply, weights.previous_reply_weight)]


def weigh_meaning(query: Query, tuning: Tuning) -> list[WeightedText]:
    """Texts with what their vectors weigh. The fewer words an utterance has, the more it leans on the conversation."""
    weights = tuning.retrieval
    leaning = weights.own_words / (weights.own_words + len(set(extract_stems(query.utterance))))
    parts = [(query.utterance, 1 - leaning), (query.standalone, leaning)]
    if query.previous_reply:
        lead = query.reply_lead(tuning.query.lead_characters)
        parts.append((f"{lead} {query.utterance}", weights.dense_reply_weight * leaning))
    hyde = [(text, weights.dense_hyde_weight / len(query.hypothetical_answers)) for text in query.hypothetical_answers]
    return [*parts, *hyde]
