"""The passage-search tool, as the flow calls it and as any LangChain agent does."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest
from langsmith.utils import get_env_var, tracing_is_enabled

from agent.search import PassageSearch, Searcher
from indexes.passages import PassageIndex, Weighted
from schemas.records import Hit, Passage, Query


def test_an_agent_calls_it_like_any_tool(example_index: PassageIndex) -> None:
    tool = PassageSearch(index=example_index)
    assert set(tool.args) == {"query", "more", "k"}
    text = tool.invoke({"query": "tomatoes on a balcony", "k": 2})
    assert text.startswith("[garden-01:1] Tomato plants")
    assert text.count("\n\n[") == 1
    message: Any = tool.invoke({"name": tool.name, "type": "tool_call", "id": "1", "args": {"query": "rye", "k": 3}})
    assert len(message.artifact) == 3


def test_every_part_of_a_query_counts(example_index: PassageIndex) -> None:
    searcher = Searcher.over(example_index, k=5)
    bare = searcher.search(Query("How often do they need water?"))
    full = searcher.search(Query("How often do they need water?", "-", ("Boston ferns", "fuchsias"), "", ""))
    assert bare != full
    assert full[0].id == "garden-04:2"
    assert searcher.read(full[:1])[0].id == "garden-04:2"
    assert searcher.search(Query("xyzzy")) == ()


class Watched:
    """The index, noting whether LangChain would trace the call."""

    def __init__(self, index: PassageIndex) -> None:
        self.index, self.traced = index, list[object]()

    def search(self, parts: Iterable[Weighted], k: int) -> tuple[Hit, ...]:
        self.traced.append(tracing_is_enabled())
        return self.index.search(parts, k)

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        return self.index.read(ids)


def test_nothing_is_traced_to_anywhere(example_index: PassageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain would send every call to a server if the environment says so; ours never does."""
    forget = cast("Any", get_env_var).cache_clear
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    forget()
    assert tracing_is_enabled()
    watched = Watched(example_index)
    assert Searcher(PassageSearch(index=watched), k=5).search(Query("rye bread"))
    assert watched.traced == [False]
    forget()
