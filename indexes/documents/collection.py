"""What a conversation asks, as it is told to the person: a folder's documents, or an index and its size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from indexes.documents.whole_documents import WholeDocuments
from indexes.passage_index import Index
from indexes.ranking.rankings import Rows
from indexes.storage.atomic_files import resolve_replaced
from schemas.errors import format_count, list_with_limit
from schemas.records import Passage

MAX_LISTED = 30  # documents named in one reply
CHANGED, GONE = "the file has changed since", "the file is gone"


@dataclass(frozen=True, slots=True)
class Collection:
    """The passages that a conversation asks."""

    source: str  # the index or folder, as it was named
    index: Index
    is_empty: bool = False  # whether all documents went away: then the index is that of what there was
    rows: Rows | None = None  # which of the index's passages are asked; None: all
    today: Callable[[], date] = date.today  # in the local time zone, by which "yesterday" is meant

    @property
    def name(self) -> str:
        """The last part of the source's path."""
        return Path(self.source).name or self.source

    @property
    def is_folder(self) -> bool:
        """Whether the passages are from documents, whose paths their ids begin with."""
        return resolve_replaced(Path(self.source)) != self.index.directory

    def describe(self) -> str:
        """Its documents in a sentence; of an index only the size."""
        if not self.is_folder:
            return f"I search the index {self.name}: {len(self.index)} passages."
        paths = list(self.list_documents())
        if not paths:
            return "I have no documents now."
        return f"I have {format_count(len(paths), 'document')}: {name_documents(paths)}."

    def list_numbers(self) -> Sequence[int]:
        """The passages that are asked, by their places in the index."""
        if self.is_empty:
            return ()
        return range(len(self.index)) if self.rows is None else tuple(self.rows.nonzero()[0].tolist())

    def open_documents(self) -> WholeDocuments | None:
        """What reads documents whole; None of no folder."""
        return WholeDocuments(self.index, self.list_numbers()) if self.is_folder and not self.is_empty else None

    def has_file(self, passage: Passage) -> bool:
        """Whether a cited passage is of a file of this folder, which may be gone."""
        return self.is_folder and _find_file(passage).is_relative_to(self.source)

    def explain_change(self, passage: Passage) -> str:
        """What became of a cited passage of this folder since; "" where it is as it was, or from elsewhere."""
        if not self.has_file(passage):
            return ""
        now = None if self.is_empty else self.index.find(passage.id)
        if now and now.text == passage.text:
            return ""
        return CHANGED if _find_file(passage).exists() else GONE

    def list_documents(self) -> dict[str, str]:
        """The paths of its documents below the folder, each with the id of the document's first passage."""
        first: dict[str, str] = {}
        for id in self.index.get_ids(self.list_numbers()):
            first.setdefault(id.rpartition(":")[0] or id, id)
        return first


def name_documents(names: Sequence[str]) -> str:
    return ", ".join(list_with_limit(names, MAX_LISTED, "and {} more"))


def _find_file(passage: Passage) -> Path:
    return Path(url2pathname(urlsplit(passage.url).path))
