"""What a conversation asks, as it is told to the person: a folder's documents, or an index and its size."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from indexes.documents.whole_documents import WholeDocuments, has_all_words
from indexes.passage_index import Index
from indexes.ranking.rankings import Rows
from indexes.storage.atomic_files import resolve_replaced
from schemas.errors import format_count, list_with_limit
from schemas.records import Passage

MAX_LISTED = 30  # documents named in one reply
MAX_SEARCHED = 200  # passages that may speak of a subject
CHANGED, GONE = "the file has changed since", "the file is gone"


@dataclass(frozen=True, slots=True)
class Document:
    path: str  # below the folder
    first_passage: str  # the id of its first passage


@dataclass(frozen=True, slots=True)
class Collection:
    """The passages that a conversation asks."""

    source: str  # the index or folder, as it was named
    index: Index
    is_empty: bool = False  # whether all documents went away: then the index is that of what there was
    kept_to: frozenset[str] | None = None  # the paths of the documents that are listed; None: of all
    today: Callable[[], date] = date.today  # in the local time zone, by which "yesterday" is meant

    @property
    def name(self) -> str:
        """The last part of the source's path."""
        return Path(self.source).name or self.source

    @property
    def is_folder(self) -> bool:
        """Whether the passages are from documents, whose paths their ids begin with."""
        return resolve_replaced(Path(self.source)) != self.index.directory

    def describe(self, subject: str = "") -> str:
        """Its documents in a sentence, those about a subject where one is given; of an index only the size."""
        if not self.is_folder:
            return f"I search the index {self.name}: {len(self.index)} passages."
        documents = self.list_documents()
        if not documents:
            return "I have no documents now."
        if not subject:
            return f"I have {format_count(len(documents), 'document')}: {_name_documents(documents)}."
        found = [document for document in documents if self.is_about(document, subject)]
        further = [document for document in self._list_mentioning(subject, documents) if document not in found]
        return _say_found(subject, found, further, len(documents))

    def open_documents(self, rows: Rows | None) -> WholeDocuments | None:
        """What reads documents whole, of these rows of the index alone where some are given; None of no folder."""
        if not self.is_folder or self.is_empty:
            return None
        return WholeDocuments(self.index, None if rows is None else tuple(map(int, rows.nonzero()[0])))

    def explain_change(self, passage: Passage) -> str:
        """What became of a cited passage since; "" where it is as it was, or from elsewhere."""
        if not self.has_file(passage):
            return ""
        now = None if self.is_empty else self.index.find(passage.id)
        if now and now.text == passage.text:
            return ""
        return CHANGED if _find_file(passage).exists() else GONE

    def has_file(self, passage: Passage) -> bool:
        """Whether a passage is of a file of this folder, which may have changed since."""
        return self.is_folder and _find_file(passage).is_relative_to(self.source)

    def list_documents(self) -> list[Document]:
        if self.is_empty:
            return []
        first: dict[str, str] = {}
        for id in self.index.get_ids(range(len(self.index))):
            first.setdefault(id.rpartition(":")[0] or id, id)
        return [Document(path, id) for path, id in first.items() if self.kept_to is None or path in self.kept_to]

    def _list_mentioning(self, subject: str, documents: Sequence[Document]) -> list[Document]:
        """The files with passages that have all words of a subject, those with most such passages first."""
        passages = self.index.read([hit.id for hit in self.index.search([(subject, 1.0)], MAX_SEARCHED)])
        fitting = [each for each in passages if has_all_words(f"{each.title} {each.text}", subject, each.language)]
        by_path = {document.path: document for document in documents}
        times = Counter(passage.document for passage in fitting)
        return [by_path[path] for path, _ in times.most_common() if path in by_path]

    def is_about(self, document: Document, subject: str) -> bool:
        (passage,) = self.index.read([document.first_passage])
        return has_all_words(f"{document.path} {passage.title}", subject, passage.language)


def _find_file(passage: Passage) -> Path:
    return Path(url2pathname(urlsplit(passage.url).path))


def _say_found(subject: str, found: Sequence[Document], further: Sequence[Document], total: int) -> str:
    """Which documents have a subject in their path or title, and which speak of it."""
    if found:
        named = f"{len(found)} of my {total} documents by path or title: {_name_documents(found)}."
        return f"{named} {len(further)} more by contents: {_name_documents(further)}." if further else named
    if further:
        return f"{len(further)} of my {total} documents by contents: {_name_documents(further)}."
    return f"None of my {total} documents has “{subject}” in its path, title or contents."


def _name_documents(documents: Sequence[Document]) -> str:
    return ", ".join(list_with_limit([document.path for document in documents], MAX_LISTED, "and {} more"))
