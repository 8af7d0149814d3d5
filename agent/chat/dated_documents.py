"""Documents by date and kind: "the newest invoice", "mails of 2025", "documents of last month", in English and German.

The date of a message is that of its header; of a document the one in its name or title, else when the file was last
changed. Messages are in order by UTC; which day one is of goes by the local time zone.
"""

import os
import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np

from indexes.documents.collection import MAX_LISTED, Collection
from indexes.documents.whole_documents import has_all_words, stem_path
from indexes.ranking.rankings import Rows
from indexes.text.analysis import ENGLISH
from indexes.text.dates import DATE, MONTH, MONTHS, to_iso
from schemas.errors import list_with_limit
from schemas.records import Passage

_KINDS = {  # how the names of their files end; all documents end in ""
    "mail message nachricht": (".eml", ".mbox", ".msg"),
    "pdf": (".pdf",),
    "table tabelle spreadsheet": (".csv", ".tsv", ".xlsx", ".ods"),
    "slide presentation": (".pptx", ".odp"),
    "note notiz": (".md", ".txt"),
    "picture photo": (".png", ".jpg", ".jpeg", ".tif", ".tiff"),
    "document file dokument datei": ("",),
}
_ENDINGS = {word: endings for words, endings in _KINDS.items() for word in words.split()}
NOUN = rf"(?:e-?)?(?:{'|'.join(_ENDINGS)})(?:en|[sen])?"


@dataclass(frozen=True, slots=True)
class Period:
    """Days that belong together, both ends included."""

    first: date
    last: date

    def __contains__(self, other: object) -> bool:
        """Whether all of another period is in this one."""
        return isinstance(other, Period) and self.first <= other.first and other.last <= self.last

    def __str__(self) -> str:
        first, last = (f"{day.day} {day:%B %Y}" for day in (self.first, self.last))
        return first if first == last else f"{first} to {last}"


@dataclass(frozen=True, slots=True)
class NamedPeriod:
    """A period where a text names it."""

    period: Period
    start: int  # of its words in the text, with the preposition before them
    end: int

    def cut_out(self, text: str) -> str:
        """The text without the words of the period."""
        return (text[: self.start].rstrip() + re.sub(r"^['’]s?(?= )", "", text[self.end :])).strip()


_PERIOD = re.compile(
    r"(?<![\w.-])(?:(?P<since>since|seit)\s+)?(?P<link>(?:of|in|from|on|during|von|vom|aus|am|im|de|del|di|van|em|en)\s+)?"
    r"(?:the |der |dem )?(?:(?P<day>today|heute|(?P<past>yesterday|gestern))"
    r"|(?:(?P<past2>last|letzte[nrms]?)|this|diese[nrms]?)\s+(?P<unit>week|month|year|woche|monats?|jahr(?:es)?)"
    rf"|(?P<date>{DATE.pattern.replace('P<', 'P<d_').replace('P=', 'P=d_')})|(?P<month>{MONTH}))(?![\w-])",
    re.IGNORECASE,
)


def to_period(iso: str) -> Period | None:
    """The days of `2025`, `2025-03` or `2025-03-11`; None where there is no such day, and for anything else."""
    try:
        year, month, day = (*map(int, iso.split("-")), 0, 0)[:3]
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    return Period(first, first if day else date(year, month or 12, monthrange(year, month or 12)[1]))


def find_period(text: str, today: date) -> NamedPeriod | None:
    """The first period that a text names."""
    for found in _PERIOD.finditer(text):
        if period := _read_period(found, today):
            last = max(today, period.last) if found["since"] else period.last
            return NamedPeriod(Period(period.first, last), found.start(), found.end())
    return None


def _read_period(found: "re.Match[str]", today: date) -> Period | None:
    if found["date"]:
        plain = DATE.search(found["date"])
        return to_period(iso) if plain and (iso := to_iso(plain)) else None
    if found["month"]:
        month = MONTHS[found["month"].casefold()]  # the latest that has begun; "may" is no month without "in"
        return (
            to_period(f"{today.year - (month > today.month)}-{month:02}") if found["link"] or found["since"] else None
        )
    is_past = bool(found["past"] or found["past2"])
    if found["day"]:
        return Period(day := today - timedelta(is_past), day)
    if found["unit"][0] in "wW":
        monday = today - timedelta(today.weekday() + 7 * is_past)
        return Period(monday, monday + timedelta(6))
    if found["unit"][0] in "mM":
        return to_period(f"{today.replace(day=1) - timedelta(1) if is_past else today:%Y-%m}")
    return to_period(str(today.year - is_past))


_MESSAGE = re.compile(r"(.*\.mbox:message\d+)(?:\.\d+)?", re.IGNORECASE)
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

    @cached_property
    def changed(self) -> datetime | None:
        """When the file was last changed; None where it is gone."""
        source = Path(self.collection.source)
        below = os.fsdecode(unquote_to_bytes(os.fsencode(self.path)))
        try:
            status = ((source if source.is_dir() else source.parent) / below).stat()
        except (OSError, ValueError):
            return None
        return datetime.fromtimestamp(status.st_mtime, UTC)

    @property
    def period(self) -> Period | None:
        """The days of its own date, else the day on which the file was changed; None where it is gone."""
        if period := to_period(self.written):
            return period
        moment = datetime.fromisoformat(self.written) if self.is_message else self.changed
        return Period(day := moment.astimezone().date(), day) if moment else None

    @property
    def order(self) -> str:
        """What items are in order by: the moment in UTC as far as it is known. Of one that is gone ""."""
        return self.written or (self.changed.isoformat() if self.changed else "")

    @property
    def date_words(self) -> str:
        """`2 March 2025`, `2025-03` of a month, `changed on 2 March 2025` where it has no date of its own; or ""."""
        if 0 < len(self.written) < 10 or not self.period:
            return self.written
        return str(self.period) if self.written else f"changed on {self.period}"

    def describe(self) -> str:
        """Its name with its date."""
        return f"{self.name} ({self.date_words})" if self.date_words else self.name

    def has_words(self, words: str, *texts: str) -> bool:
        """Whether its path and title, or other texts, have all of some words, in the language of the document."""
        first = self.passages[0]
        return has_all_words(" ".join(texts or (self.path, first.title)), words, first.language)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items are asked for: all that is given has to hold."""

    noun: str = "documents"  # as it was said
    sender: str = ""  # of a message; of another document in its path or title
    subject: str = ""
    period: Period | None = None

    @property
    def kind(self) -> str:
        return next(word for word in _ENDINGS if word in self.noun.casefold())

    @property
    def is_of_all(self) -> bool:
        """Whether documents of all kinds are asked for."""
        return "" in _ENDINGS[self.kind]

    def fits(self, item: DatedItem) -> bool:
        """Whether an item is asked for. What is quickly seen is looked at first."""
        is_of_kind = item.path.casefold().endswith(_ENDINGS[self.kind]) or has_all_words(item.path, self.kind, ENGLISH)
        if not is_of_kind or (self.period and item.period not in self.period):
            return False
        if self.sender:
            named = _SENDER.search(item.passages[0].title)
            if not item.has_words(self.sender, *([named["sender"]] if named else [])):
                return False
        texts = (f"{passage.title} {passage.text}" for passage in item.passages)
        return not self.subject or item.has_words(self.subject, item.path, *texts)


def list_items(collection: Collection) -> list[DatedItem]:
    """The documents of a folder, and of mailboxes the messages, in the order of the index."""
    if collection.is_empty:
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
    items = list_items(collection) if collection.is_folder else []
    if items and wanted.subject:
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


_ARTICLES = r"(?:(?:all|of|the|my|your|our|any|alle|die|meine) )*"
_LEAD = r"(?:(?:and|so|please|can you|und|bitte) )*"
_WHICH, _SHOW = r"(?:what|which|how many|welche)", r"(?:list|show(?: me)?|do you have|zeig(?: mir)?)"
_HAVE = (
    r"(?:do (?:i|you|we) have|have you(?: got| read)?|are there|are in (?:the|this) folder|can (?:you read|i ask)"
    r"|hast du|habe ich|gibt es)"
)
FROM = r"(?: (?:from|by|von) (?P<sender>(?!the\b)[\w .'-]+?))??"
ABOUT = r"(?: (?:about|on|regarding|über|zu) (?:(?:the|my|our) )?(?P<subject>[\w '-]+?))??"
_LISTING = re.compile(
    rf"{_LEAD}(?:{_SHOW} {_ARTICLES}(?P<noun>{NOUN})|{_WHICH} {_ARTICLES}(?P<noun2>{NOUN}) {_HAVE}){ABOUT}"
    r"(?:,? please)?",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    rf"(?:{_WHICH} |{_SHOW} )?{_ARTICLES}(?P<noun>{NOUN}){FROM}{ABOUT}"
    rf"(?: {_HAVE}| (?:came|arrived|kamen|are|is|from|of|von))*",
    re.IGNORECASE,
)


def read_wanted(text: str, collection: Collection) -> Wanted | None:
    """What a phrase names by days, kind or subject: "the mails of 2025", "last week"; None for any other."""
    named = find_period(text, collection.today())
    rest = named.cut_out(text) if named else text
    found = _PHRASE.fullmatch(rest)
    if rest and not found:
        return None
    wanted = Wanted(found["noun"], found["sender"] or "", found["subject"] or "") if found else Wanted()
    wanted = replace(wanted, period=named.period if named else None)
    return wanted if named or wanted.sender or wanted.subject or not wanted.is_of_all else None


def find_listing(utterance: str, collection: Collection) -> Wanted | None:
    """What the whole of an utterance asks to have listed; None for a question, and for what may be one."""
    text = " ".join(utterance.split()).rstrip(" ?!.")
    if found := _LISTING.fullmatch(text):
        wanted = Wanted(found["noun"] or found["noun2"], subject=found["subject"] or "")
        return wanted if collection.is_folder or not wanted.subject else None
    named = find_period(text, collection.today()) if collection.is_folder else None
    rest = named.cut_out(text) if named else ""
    return read_wanted(text, collection) if rest else None


def describe_listing(wanted: Wanted, collection: Collection) -> str:
    """The documents that were asked for, the newest first where days were named."""
    if not wanted.period and (wanted.is_of_all or not collection.is_folder):
        return collection.describe(wanted.subject)
    days = f" dated {wanted.period}" if wanted.period else ""
    found = order_by_date(select_items(wanted, collection))
    if not found:
        return f"I have no {wanted.noun}{days}."
    listed = ", ".join(list_with_limit([item.describe() for item in found], MAX_LISTED, "and {} more"))
    return f"{wanted.noun[0].upper()}{wanted.noun[1:]}{days}: {listed}."
