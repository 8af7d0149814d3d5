"""The passage-search tool, as the flow calls it and as any LangChain agent does."""

from typing import Any, cast

import pytest
from langsmith.utils import get_env_var, tracing_is_enabled

from agent.turn.retrieval import PassageSearch, Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import HybridRetriever, open_retriever
from schemas.records import Hit, Plan, Query


def test_an_agent_calls_it_like_any_tool(example_index: PassageIndex) -> None:
    tool = PassageSearch(retriever=open_retriever(example_index, None))
    assert set(tool.args) == {"query", "k"}
    text = tool.invoke({"query": "tomatoes on a balcony", "k": 2})
    assert text.startswith("[garden-01:1] Tomato plants")
    assert text.count("\n\n[") == 1
    message: Any = tool.invoke({"name": tool.name, "type": "tool_call", "id": "1", "args": {"query": "rye", "k": 3}})
    assert len(message.artifact) == 3


def test_every_part_of_a_query_counts(example_index: PassageIndex) -> None:
    searcher = Searcher(open_retriever(example_index, None), Plan(k=5))
    bare = searcher.search(Query("How often do they need water?"))
    full = searcher.search(Query("How often do they need water?", "-", ("Boston ferns", "fuchsias")))
    assert bare != full
    assert full[0].id == "garden-04:2"
    assert searcher.read(full[:1])[0].id == "garden-04:2"
    assert searcher.search(Query("xyzzy")) == ()


def test_a_turn_that_says_nothing_is_about_what_was_said_before(example_index: PassageIndex) -> None:
    searcher = Searcher(open_retriever(example_index, None), Plan(k=5))
    assert searcher.search(Query("xyzzy", earlier_utterances=("Which ferns live indoors?",)))


def test_nothing_is_traced_to_anywhere(example_index: PassageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain would send every call to a server if the environment says so; ours never does."""
    forget, traced, find = cast("Any", get_env_var).cache_clear, list[bool](), HybridRetriever.find

    def watch(self: HybridRetriever, *asked: Any, **more: Any) -> tuple[Hit, ...]:
        traced.append(bool(tracing_is_enabled()))
        return find(self, *asked, **more)

    monkeypatch.setattr(HybridRetriever, "find", watch)
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    forget()
    assert tracing_is_enabled()
    assert Searcher(open_retriever(example_index, None), Plan(k=5)).search(Query("rye bread"))
    assert traced == [False]
    forget()
