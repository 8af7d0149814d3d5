"""The documents of a folder, each of which can be read whole: what is computed over a table needs all of its rows."""

from dataclasses import dataclass
from functools import cached_property

from indexes.passage_index import PassageIndex
from schemas.records import Passage, Response


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer from a whole document, and the passages that it cites."""

    response: Response
    passages: tuple[Passage, ...]


class WholeDocuments:
    """The documents whose passages an index holds, by their paths below the folder."""

    def __init__(self, index: PassageIndex) -> None:
        self._index = index

    def __len__(self) -> int:
        """How many passages they have together."""
        return len(self._index)

    @property
    def names(self) -> tuple[str, ...]:
        """The paths, in the order of the index."""
        return tuple(self._ids)

    def read(self, name: str) -> tuple[Passage, ...]:
        """All passages of a document, in its order."""
        return self._index.read(self._ids[name])

    def read_title(self, name: str) -> str:
        """The title of a document's first passage."""
        (first,) = self._index.read(self._ids[name][:1])
        return first.title

    @cached_property
    def _ids(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for id in self._index.get_ids(range(len(self._index))):
            found.setdefault(id.rpartition(":")[0] or id, []).append(id)
        return found
