"""The passages that the next question is asked of, which may be replaced while the program runs."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from agent.chat.collection import Collection
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import HybridRetriever

Listener = Callable[[str], object]  # is told in a few words what became of the documents
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class SearchableCollection:
    """A collection with what finds passages in it."""

    collection: Collection
    retriever: HybridRetriever


class CurrentCollection:
    """A collection whose place another one can take, at once and as a whole, from any thread.

    Whoever answers takes `searchable` once, and has the same passages until the answer is done.
    """

    def __init__(self, collection: Collection, open_retriever: Callable[[PassageIndex], HybridRetriever]) -> None:
        self._open_retriever = open_retriever
        self.tell: Listener = log.info
        self.replace(collection)

    def replace(self, collection: Collection) -> None:
        """Let the next question be asked of this collection. Opening it may take a while, and holds nobody up."""
        stages_from = self._open_retriever(collection.index)
        retriever = HybridRetriever(collection.index, ()) if collection.is_empty else stages_from
        self.searchable = SearchableCollection(collection, retriever)

    @property
    def collection(self) -> Collection:
        return self.searchable.collection
