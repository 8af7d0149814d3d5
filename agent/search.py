"""The passage-search tool: LangChain's tool interface over the passage index, and how the flow calls it."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg
from langsmith import tracing_context
from pydantic import BaseModel, Field

from agent.embedding import cached
from agent.llm.seam import Listener, unheard
from indexes.finder import Finder
from indexes.passages import PassageIndex, Weighted
from indexes.statistics import Dirichlet, Score, Statistics
from indexes.vectors import Embedder
from indexes.words import stems
from schemas.records import Call, Hit, Passage, Plan, Query

log = logging.getLogger("convagent")
# What the words of each part of a query weigh beside the person's own, which weigh 1 (docs/log.md).
CONTEXT, ANSWER, PREVIOUS = 0.5, 0.3, 0.05
# What is looked for by meaning: the fewer words of its own an utterance has, the more it leans on what was said.
LEANING = 6  # words with which it leans on itself and on the conversation alike
SAID, IMAGINED = 0.5, 0.5  # what the reply that it follows, and hypothetical answers, weigh beside the two
SNIPPET = 600  # characters of a passage that a model sees in the tool's reply


class SearchArguments(BaseModel):
    """What a model fills in to call the tool; `more` and `meaning` are not shown to it, but for callers that know more.

    `more` are further texts, each with the weight of its words; `meaning` is what is meant, with weights (default: the
    query).
    """

    query: str = Field(description="What to look for, in plain words")
    more: Annotated[list[tuple[str, float]], InjectedToolArg] = []
    meaning: Annotated[list[tuple[str, float]], InjectedToolArg] = []
    k: int = Field(default=5, ge=1, le=1000, description="How many passages to return")


class PassageSearch(BaseTool):
    """Searches the passages of one index. The reply is text for a model; the artifact is the tuple of hits.

    Called by itself it is never traced, whatever the environment says: nothing leaves the machine.
    """

    name: str = "passage_search"
    description: str = "Search the indexed passages. Returns the best ones with their ids, most relevant first."
    args_schema: Any = SearchArguments
    response_format: Any = "content_and_artifact"
    finder: Any  # Finder

    @classmethod
    def over(cls, directory: Path | str, embedder: str | None = None) -> "PassageSearch":
        """The tool over an index directory; `embedder` and the errors are those of `find_in`."""
        return cls(finder=find_in(directory, embedder))

    def run(self, *arguments: Any, **settings: Any) -> Any:
        with tracing_context(enabled=False):
            return super().run(*arguments, **settings)

    async def arun(self, *arguments: Any, **settings: Any) -> Any:
        with tracing_context(enabled=False):
            return await super().arun(*arguments, **settings)

    def _run(
        self, query: str, more: Sequence[Weighted] = (), meaning: Sequence[Weighted] = (), k: int = 5
    ) -> tuple[str, tuple[Hit, ...]]:
        hits = self.finder.find([(query, 1.0), *more], meaning or [(query, 1.0)], k)
        shown = self.finder.read([hit.id for hit in hits[:5]])
        text = "\n\n".join(f"[{passage.id}] {passage.text[:SNIPPET]}" for passage in shown)
        return text or "Nothing was found.", hits


@dataclass(frozen=True, slots=True)
class Searcher:
    """The tool as the flow holds it: a query in, ranked hits out; and the texts of hits."""

    tool: PassageSearch
    plan: Plan = Plan()
    listen: Listener = unheard

    @classmethod
    def over(cls, finder: Finder, plan: Plan, listen: Listener = unheard) -> "Searcher":
        return cls(PassageSearch(finder=finder), plan, listen)

    def search(self, query: Query) -> tuple[Hit, ...]:
        """As many hits as are planned, scores strictly decreasing; none where there is nothing to be found."""
        if not self.plan.searched:
            return ()
        if "previous" not in self.plan.query:
            query = replace(query, previous="")
        found = self._call(query)
        if not found and query.earlier:  # a mere "Thank you": what it answers to is what it is about
            found = self._call(replace(query, context=query.earlier))
        return found

    def read(self, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """The passages of hits, in their order."""
        passages: tuple[Passage, ...] = self.tool.finder.read([hit.id for hit in hits])
        return passages

    def _call(self, query: Query) -> tuple[Hit, ...]:
        started = time.perf_counter()
        words = {"query": query.utterance, "more": _more(query)}
        arguments = words | {"meaning": _meaning(query), "k": self.plan.searched}
        call = {"name": self.tool.name, "type": "tool_call", "id": "search", "args": arguments}
        hits: tuple[Hit, ...] = self.tool.invoke(call).artifact
        seconds = round(time.perf_counter() - started, 4)
        self.listen(Call("search", "search", query.standalone, f"{len(hits)} passages", seconds=seconds))
        return hits


def _more(query: Query) -> list[Weighted]:
    """The rewrite counts only where a model wrote it: otherwise it is the utterance and the context over again."""
    unsaid = [(phrase, CONTEXT) for phrase in query.context] or [(query.standalone, CONTEXT)]
    imagined = [(answer, ANSWER / len(query.answers)) for answer in query.answers]
    return [*unsaid, *imagined, (query.previous, PREVIOUS)]


def _meaning(query: Query) -> list[Weighted]:
    leaning = LEANING / (LEANING + len(set(stems(query.utterance))))
    parts = [(query.utterance, 1 - leaning), (query.standalone, leaning)]
    if query.previous:
        parts.append((f"{query.topic} {query.utterance}", SAID * leaning))
    return [*parts, *((answer, IMAGINED / len(query.answers)) for answer in query.answers)]


def find_in(directory: Path | str, embedder: str | None = None) -> Finder:
    """A finder over an index directory; `embedder` is a name as `open_embedder` has it, without one `minilm` if there.

    Raises `MissingError` where there is no such index or embedding model.
    """
    from agent.embedders import open_embedder

    model = open_embedder(embedder)
    return open_finder(PassageIndex(Path(directory)), model and cached(model))


def open_finder(index: PassageIndex, embedder: Embedder | None, plan: Plan = Plan()) -> Finder:
    """An index with an embedding model, or without. The vectors of passages are the index's own, or made as needed."""
    finder = Finder(index, score=_scorer(index, plan))
    if embedder is None:
        return finder
    about = index.embedded
    if about is not None and about.digest != embedder.digest:
        log.info("%s has vectors of %s; those of %s are made as needed", index.directory, about.model, embedder.name)
    own = about is not None and about.digest == embedder.digest
    return replace(finder, embed=embedder.embed, vectors=index.vectors if own else None)


def _scorer(index: PassageIndex, plan: Plan) -> Score | None:
    """What Tantivy's hits are scored with instead; it has to know the words of the whole collection."""
    if plan.scorer == "bm25":
        return None
    log.info("Counting the words of %d passages for --scorer %s", len(index), plan.scorer)
    return Dirichlet(Statistics.of(index.texts()))
