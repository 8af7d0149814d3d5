"""The documents of a folder, each of which can be read whole: what is computed over a table needs all of its rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from indexes.passage_index import Index
from indexes.text.analysis import ENGLISH, extract_stems
from schemas.records import Passage


def stem_path(text: str, language: str = ENGLISH) -> set[str]:
    """The stems of a path or title, also of the words between its dots and strokes."""
    return set(extract_stems(re.sub(r"[/._-]", " ", text), language))


def has_all_words(text: str, words: str, language: str) -> bool:
    """Whether a text has all of some words, by the stemmer of its language or that of English."""
    stems = ((stem_path(words, each), each) for each in dict.fromkeys((language, ENGLISH)))
    return any(wanted and wanted <= stem_path(text, each) for wanted, each in stems)


@dataclass(frozen=True)
class WholeDocuments:
    """The documents whose passages an index holds, by their paths below the folder."""

    index: Index
    numbers: Sequence[int] | None = None  # of the passages that may be read; None: of all

    def __len__(self) -> int:
        return len(self.index) if self.numbers is None else len(self.numbers)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._ids)

    def read(self, name: str) -> tuple[Passage, ...]:
        return self.index.read(self._ids[name])

    def read_title(self, name: str) -> str:
        (first,) = self.index.read(self._ids[name][:1])
        return first.title

    def find_named(self, stems: set[str]) -> list[str]:
        """The documents whose paths and titles have all of some stems; none for no stems."""
        return [name for name in self.names if stems and stems <= self._stems_of[name]]

    @cached_property
    def _stems_of(self) -> dict[str, set[str]]:
        return {name: stem_path(f"{name} {self.read_title(name)}") for name in self.names}

    @cached_property
    def _ids(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for id in self.index.get_ids(range(len(self.index)) if self.numbers is None else self.numbers):
            found.setdefault(id.rpartition(":")[0] or id, []).append(id)
        return found
