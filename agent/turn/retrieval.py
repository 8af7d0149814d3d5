"""The passage-search tool: LangChain's tool interface over the passage index, and how the flow calls it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.models.protocol import Listener, ignore_call
from agent.turn.search_tool import PassageSearch
from indexes.passage_index import WeightedText
from indexes.ranking.hybrid import HybridRetriever
from indexes.text.analysis import extract_stems
from schemas.records import Call, Hit, Passage, Plan, Query

# What the words of each part of a query weigh beside the person's own, which weigh 1 (docs/log.md).
CONTEXT_WEIGHT, HYDE_WEIGHT, PREVIOUS_REPLY_WEIGHT = 0.5, 0.3, 0.05
# What is looked for by meaning: the fewer words of its own an utterance has, the more it leans on what was said.
CONTEXT_DEPENDENCE_WORDS = 6  # words with which it leans on itself and on the conversation alike
DENSE_REPLY_WEIGHT, DENSE_HYDE_WEIGHT = (
    0.5,
    0.5,
)  # what the reply that it follows, and hypothetical answers, weigh beside the two


@dataclass(frozen=True, slots=True)
class Searcher:
    """The tool as the flow holds it: a query in, ranked hits out; and the texts of hits."""

    tool: PassageSearch
    plan: Plan = Plan()
    listen: Listener = ignore_call

    @classmethod
    def over(cls, retriever: HybridRetriever, plan: Plan, listen: Listener = ignore_call) -> "Searcher":
        return cls(PassageSearch(retriever=retriever), plan, listen)

    def search(self, query: Query) -> tuple[Hit, ...]:
        """As many hits as are planned, scores strictly decreasing; none where there is nothing to be found."""
        if not self.plan.retrieval_depth:
            return ()
        if "previous" not in self.plan.query:
            query = replace(query, previous_reply="")
        found = self._call(query)
        if not found and query.earlier_utterances:  # a mere "Thank you": what it answers to is what it is about
            found = self._call(replace(query, context=query.earlier_utterances))
        return found

    def read(self, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """The passages of hits, in their order."""
        passages: tuple[Passage, ...] = self.tool.retriever.read([hit.id for hit in hits])
        return passages

    def _call(self, query: Query) -> tuple[Hit, ...]:
        started = time.perf_counter()
        words = {"query": query.utterance, "more": _expansion_terms(query)}
        arguments = words | {"meaning": _dense_query(query), "k": self.plan.retrieval_depth}
        call = {"name": self.tool.name, "type": "tool_call", "id": "search", "args": arguments}
        hits: tuple[Hit, ...] = self.tool.invoke(call).artifact
        seconds = round(time.perf_counter() - started, 4)
        self.listen(Call("search", "search", query.standalone, f"{len(hits)} passages", seconds=seconds))
        return hits


def _expansion_terms(query: Query) -> list[WeightedText]:
    """The rewrite counts only where a model wrote it: otherwise it is the utterance and the context over again."""
    unsaid = [(phrase, CONTEXT_WEIGHT) for phrase in query.context] or [(query.standalone, CONTEXT_WEIGHT)]
    hypothetical = [(answer, HYDE_WEIGHT / len(query.hypothetical_answers)) for answer in query.hypothetical_answers]
    return [*unsaid, *hypothetical, (query.previous_reply, PREVIOUS_REPLY_WEIGHT)]


def _dense_query(query: Query) -> list[WeightedText]:
    leaning = CONTEXT_DEPENDENCE_WORDS / (CONTEXT_DEPENDENCE_WORDS + len(set(extract_stems(query.utterance))))
    parts = [(query.utterance, 1 - leaning), (query.standalone, leaning)]
    if query.previous_reply:
        parts.append((f"{query.reply_lead} {query.utterance}", DENSE_REPLY_WEIGHT * leaning))
    return [
        *parts,
        *((answer, DENSE_HYDE_WEIGHT / len(query.hypothetical_answers)) for answer in query.hypothetical_answers),
    ]
