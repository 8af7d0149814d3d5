"""Documents, and the messages of mailboxes, with their dates.

The date of a message is that of its header; of a document the one in its name or title, else when the file was last
changed. Messages are in order by UTC; which day one is of goes by the local time zone.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np

from agent.chat.selection.days import Period, format_day, to_period
from agent.chat.selection.kinds import is_of_kind
from indexes.documents.collection import Collection
from indexes.documents.whole_documents import has_all_words, stem_path
from indexes.ranking.rankings import Rows
from schemas.records import Passage

_MESSAGE = re.compile(r"(.*\.mbox:message\d+)(?:\.\d+)?", re.IGNORECASE)
_ASKS_ABOUT_TIME = re.compile(r"\b(?:when|how old|how new|latest|newest|wann|wie alt|neueste[nrs]?)\b", re.IGNORECASE)
_SENDER = re.compile(r"\((?:.*?, )?from (?P<sender>[^()]*)\)")  # in the title of a message


@dataclass(frozen=True)
class DatedItem:
    """A document, or a message of a mailbox."""

    name: str  # the path below the folder, of a message with its place: `chess.mbox:message2`
    collection: Collection
    numbers: tuple[int, ...]  # of its passages
    written: str  # its own date, ISO 8601; "" for none

    @property
    def path(self) -> str:
        """That of the file below the folder."""
        return self.name.rpartition(":")[0] or self.name

    @property
    def is_message(self) -> bool:
        """Whether it has the moment at which it was sent."""
        return "T" in self.written

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        index = self.collection.index
        return index.read(index.get_ids(self.numbers))

    @property
    def period(self) -> Period | None:
        """The days of its own date, else the day on which the file was changed; None where it is gone."""
        if self.is_message:
            day = datetime.fromisoformat(self.written).astimezone().date()
            return Period(day, day)
        return (to_period(self.written) if self.written else None) or self.changed

    @cached_property
    def changed(self) -> Period | None:
        """The day on which the file was last changed."""
        moment = self._changed_at
        return Period(date.fromtimestamp(moment), date.fromtimestamp(moment)) if moment else None

    @property
    def order(self) -> str:
        """What items are in order by: the moment in UTC as far as it is known. Of one that is gone ""."""
        if self.written or not self._changed_at:
            return self.written
        return datetime.fromtimestamp(self._changed_at, UTC).isoformat()

    @cached_property
    def _changed_at(self) -> float:
        source = Path(self.collection.source)
        below = os.fsdecode(unquote_to_bytes(os.fsencode(self.path)))
        try:
            return ((source if source.is_dir() else source.parent) / below).stat().st_mtime
        except (OSError, ValueError):
            return 0.0

    @property
    def date_words(self) -> str:
        """`2 March 2025`, `2025-03` of a month, `changed on 2 March 2025` where it has no date of its own; or ""."""
        if self.written and len(self.written) < 10:
            return self.written
        if self.written:
            return str(self.period)
        return f"changed on {format_day(self.changed.first)}" if self.changed else ""

    def describe(self) -> str:
        """Its name with its date."""
        return f"{self.name} ({self.date_words})" if self.date_words else self.name

    def is_from(self, sender: str) -> bool:
        """Whether a message was sent by somebody; of another document, whether its name or title names them."""
        title, language = self.passages[0].title, self.passages[0].language
        found = _SENDER.search(title)
        return has_all_words(found["sender"] if found else f"{self.path} {title}", sender, language)

    def is_named(self, name: str) -> bool:
        """Whether path and title have all words of a name."""
        first = self.passages[0]
        return has_all_words(f"{self.path} {first.title}", name, first.language)

    def is_about(self, subject: str) -> bool:
        """Whether name, title or text have all words of a subject."""
        texts = (f"{passage.title} {passage.text}" for passage in self.passages)
        return has_all_words(" ".join((self.path, *texts)), subject, self.passages[0].language)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items are asked for: all that are given have to hold."""

    kinds: frozenset[str] = frozenset()
    sender: str = ""
    subject: str = ""
    period: Period | None = None
    by_change: bool = False  # whether the period is when files were changed

    def fits(self, item: DatedItem) -> bool:
        """Whether an item is asked for. What is quickly seen is looked at first."""
        if not is_of_kind(item.path, set(self.kinds)):
            return False
        days = item.changed if self.by_change else item.period
        if self.period is not None and days not in self.period:
            return False
        if self.sender and not item.is_from(self.sender):
            return False
        return not self.subject or item.is_about(self.subject)


def describe_date(passage: Passage, collection: Collection, question: str, within: str) -> str:
    """The date of a cited passage's document, where a question asks about time; "" for a message, whose title has it.

    When a file was changed is told only where the documents of some days were asked (`within`).
    """
    asks = bool(within) or bool(_ASKS_ABOUT_TIME.search(question))
    if not asks or "T" in passage.date or not collection.is_folder:
        return ""
    item = DatedItem(passage.document, collection, (), passage.date)
    return item.date_words if passage.date or within else ""


def list_items(collection: Collection) -> list[DatedItem]:
    """The documents of a folder, and of mailboxes the messages, in the order of the index."""
    if not collection.is_folder or collection.is_empty:
        return []
    numbers: dict[str, list[int]] = {}
    for number, id in enumerate(collection.index.get_ids(range(len(collection.index)))):
        message = _MESSAGE.fullmatch(id)
        path = id.rpartition(":")[0] or id
        if collection.kept_to is None or path in collection.kept_to:
            numbers.setdefault(message[1] if message else path, []).append(number)
    dates = collection.index.dates
    return [
        DatedItem(name, collection, tuple(held), next((dates[n] for n in held if n in dates), ""))
        for name, held in numbers.items()
    ]


def select_items(wanted: Wanted, collection: Collection) -> list[DatedItem]:
    """The items that are asked for. Only of those that a search finds is the text read for a subject."""
    items = list_items(collection)
    if wanted.subject:
        index, words = collection.index, stem_path(wanted.subject)
        found = {number for number, _ in index.rank(index.weigh([(wanted.subject, 1.0)]), len(index))}
        items = [item for item in items if not found.isdisjoint(item.numbers) or words & stem_path(item.path)]
    return [item for item in items if wanted.fits(item)]


def order_by_date(items: Iterable[DatedItem]) -> list[DatedItem]:
    """The items that have a date, the newest first."""
    return sorted((item for item in items if item.order), key=lambda item: (item.order, item.name), reverse=True)


def mark_rows(items: Sequence[DatedItem], collection: Collection) -> Rows:
    """The rows of the index that are passages of these items."""
    rows = np.zeros(len(collection.index), bool)
    rows[np.array([number for item in items for number in item.numbers], dtype=np.int64)] = True
    return rows
