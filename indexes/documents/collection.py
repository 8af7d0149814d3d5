"""What a conversation asks: a folder's documents, each of which can be read whole, or an index."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

from indexes.passage_index import Index
from indexes.ranking.rankings import Rows
from indexes.storage.atomic_files import resolve_replaced
from indexes.text.analysis import ENGLISH, extract_stems
from schemas.errors import UsageError, format_count, list_with_limit
from schemas.records import Passage, find_document

TODAY = "CONVAGENT_TODAY"  # a setting in the environment, which `--today` sets
OPENING, CLOSING = 25, 8  # words of a document that tell what it is
MAX_LISTED = 30  # documents named in one reply
_KINDS = {  # how the names of their files end; all documents end in ""
    "mail message nachricht": (".eml", ".mbox", ".msg"),
    "pdf": (".pdf",),
    "table tabelle spreadsheet": (".csv", ".tsv", ".xlsx", ".ods"),
    "slide presentation": (".pptx", ".odp"),
    "note notiz": (".md", ".txt"),
    "picture photo": (".png", ".jpg", ".jpeg", ".tif", ".tiff"),
    "document file dokument datei": ("",),
}
ENDINGS = {word: endings for words, endings in _KINDS.items() for word in words.split()}
CHANGED, GONE = "the file has changed since", "the file is gone"


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
        return tuple(self.ids)

    def read(self, name: str, most: int | None = None) -> tuple[Passage, ...]:
        """Its passages, or the first ones."""
        return self.index.read(self.ids[name][:most])

    def describe(self, name: str) -> str:
        """What tells of what kind a document is, and by whom: its beginning and end."""
        ids = self.ids[name]
        words = " ".join(passage.text for passage in self.index.read([ids[0], *ids[1:][-1:]])).split()
        shown = words if len(words) <= OPENING + CLOSING else [*words[:OPENING], "...", *words[-CLOSING:]]
        return " ".join(shown)

    def read_title(self, name: str) -> str:
        return self.read(name, 1)[0].title

    def find_named(self, stems: set[str]) -> list[str]:
        """The documents whose paths and titles have all of some stems; none for no stems."""
        return [name for name in self.names if stems and stems <= self._stems_of[name]]

    def find_signed(self, stems: set[str]) -> list[str]:
        """The documents whose last words, where a letter is signed, have all of some stems; none for no stems."""
        ends = self.index.read([ids[-1] for ids in self.ids.values()])
        words = (" ".join(passage.text.split()[-CLOSING:]) for passage in ends)
        return [name for name, end in zip(self.names, words, strict=True) if stems and stems <= stem_path(end)]

    @cached_property
    def _stems_of(self) -> dict[str, set[str]]:
        return {name: stem_path(f"{name} {self.read_title(name)}") for name in self.names}

    @cached_property
    def ids(self) -> dict[str, list[str]]:
        """The ids of the passages of each document."""
        found: dict[str, list[str]] = {}
        for id in self.index.get_ids(range(len(self.index)) if self.numbers is None else self.numbers):
            found.setdefault(find_document(id), []).append(id)
        return found


def read_today() -> date:
    """The day in the local time zone, or the one that `--today` says.

    Raises `UsageError` where that is none.
    """
    said = os.environ.get(TODAY, "")
    try:
        return date.fromisoformat(said) if said else date.today()
    except ValueError as error:
        raise UsageError(f"--today {said} is no day", remedy="Such as: 2026-05-01") from error


@dataclass(frozen=True, slots=True)
class Collection:
    """The passages that a conversation asks."""

    source: str  # the index or folder, as it was named
    index: Index
    is_empty: bool = False  # whether all documents went away: then the index is that of what there was
    rows: Rows | None = None  # which of the index's passages are asked; None: all
    today: Callable[[], date] = read_today  # by which "yesterday" is meant

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
            return f"I search the index {self.name}: {format_count(len(self.index), 'passage')}."
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

    def locate(self, name: str) -> Path:
        """The file of a document, by its path below the folder, as ids write it; or the one document that is asked."""
        source = Path(self.source)
        return (source if source.is_dir() else source.parent) / os.fsdecode(unquote_to_bytes(os.fsencode(name)))

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
        return {path: ids[0] for path, ids in WholeDocuments(self.index, self.list_numbers()).ids.items()}


def name_documents(names: Sequence[str]) -> str:
    return ", ".join(list_with_limit(names, MAX_LISTED, "and {} more"))


def _find_file(passage: Passage) -> Path:
    return Path(url2pathname(urlsplit(passage.url).path))
