"""Documents by date and kind: "the newest invoice", "mails of 2025", "documents of last month", in English and German.

They are listed, or a question is asked of them alone: "What does the latest mail say about the boat?". The date of a
message is that of its header; of a document the one in its name or title, else when the file was last changed. Messages
are in order by UTC; which day one is of goes by the local time zone.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np

from agent.chat.store import ChatTurn
from agent.turn.extractive_answer import says_not_found
from indexes.documents.collection import Collection, name_documents
from indexes.documents.whole_documents import has_all_words, stem_path
from indexes.ranking.rankings import Rows
from indexes.text.analysis import ENGLISH
from indexes.text.dates import Period, find_period, to_period
from indexes.text.sentences import split_sentences
from schemas.records import Hit, Message, Passage, Query, Response, Sentence, Turn, TurnResult

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
_NOUN = rf"(?P<noun>(?:e-?)?(?:{'|'.join(_ENDINGS)})(?:en|[sen])?)"


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


def list_paths(items: Iterable[DatedItem]) -> list[str]:
    return list(dict.fromkeys(item.path for item in items))


def select_items(wanted: Wanted, collection: Collection) -> list[DatedItem]:
    """The items that are asked for. Only of those that a search finds is the text read for a subject."""
    items = list_items(collection) if collection.is_folder else []
    if items and wanted.subject:
        index, words = collection.index, stem_path(wanted.subject)
        found = {number for number, _ in index.rank(index.weigh([(wanted.subject, 1.0)]), len(index))}
        items = [item for item in items if not found.isdisjoint(item.numbers) or words & stem_path(item.path)]
    return [item for item in items if wanted.fits(item)]


def order_by_date(items: Iterable[DatedItem]) -> list[DatedItem]:
    return sorted((item for item in items if item.order), key=lambda item: (item.order, item.name), reverse=True)


def mark_rows(items: Sequence[DatedItem], collection: Collection) -> Rows:
    rows = np.zeros(len(collection.index), bool)
    rows[np.array([number for item in items for number in item.numbers], dtype=np.int64)] = True
    return rows


# Lists of documents

_ARTICLES = r"(?:(?:all|of|the|my|your|our|any|alle|die|meine) )*"
_LEAD = r"(?:(?:and|so|please|can you|und|bitte) )*"
_WHICH, _SHOW = r"(?:what|which|how many|welche)", r"(?P<show>list|show(?: me)?|do you have|zeig(?: mir)?)"
_HAVE = (
    r"(?:do (?:i|you|we) have|have you(?: got| read)?|are there|are in (?:the|this) folder|can (?:you read|i ask)"
    r"|hast du|habe ich|gibt es)"
)
_FROM = r"(?: (?:from|by|von) (?P<sender>(?!the\b)[\w .'-]+?))??"
_ABOUT = r"(?: (?:about|on|regarding|über|zu) (?:(?:the|my|our) )?(?P<subject>[\w '-]+?))??"
_PHRASE = re.compile(
    rf"{_LEAD}(?:{_WHICH} |{_SHOW} )?{_ARTICLES}{_NOUN}(?P<have> {_HAVE})?{_FROM}{_ABOUT}"
    rf"(?: {_HAVE}| (?:came|arrived|kamen|are|is|from|of|von))*(?:,? please)?",
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
    found = _PHRASE.fullmatch(text)
    if found and (found["show"] or found["have"]) and not found["sender"]:
        wanted = Wanted(found["noun"], subject=found["subject"] or "")
        return wanted if collection.is_folder or not wanted.subject else None
    named = find_period(text, collection.today()) if collection.is_folder else None
    return read_wanted(text, collection) if named and named.cut_out(text) else None


def describe_listing(wanted: Wanted, collection: Collection) -> str:
    """The documents that were asked for, the newest first where days were named."""
    if not wanted.period and (wanted.is_of_all or not collection.is_folder):
        if wanted.subject and collection.list_documents():
            return _describe_subject(wanted.subject, collection)
        return collection.describe()
    days = f" dated {wanted.period}" if wanted.period else ""
    found = order_by_date(select_items(wanted, collection))
    if not found:
        return f"I have no {wanted.noun}{days}."
    return f"{wanted.noun[0].upper()}{wanted.noun[1:]}{days}: {name_documents([item.describe() for item in found])}."


def _describe_subject(subject: str, collection: Collection) -> str:
    """Which documents have a subject in their path or title, and which speak of it."""
    items = select_items(Wanted(subject=subject), collection)
    found = list_paths(item for item in items if item.has_words(subject))
    further = [path for path in list_paths(items) if path not in found]
    total = len(collection.list_documents())
    named = f"{len(found)} of my {total} documents by path or title: {name_documents(found)}."
    if found:
        return f"{named} {len(further)} more by contents: {name_documents(further)}." if further else named
    if further:
        return f"{len(further)} of my {total} documents by contents: {name_documents(further)}."
    return f"None of my {total} documents has “{subject}” in its path, title or contents."


# Questions that are asked of documents of a date

_THE = r"(?:the|my|our|die|der|das|dem|den|meine[rmn]?)"
_LAST = r"(?:last|letzte[nrms]?)(?= (?:e-?)?(?:mail|message|nachricht))"
_ORDER = rf"(?:(?P<new>latest|newest|most recent|neueste[nrms]?|{_LAST})|(?P<old>oldest|earliest|älteste[nrms]?))"
_OVERVIEW = re.compile(
    r"(?:(?:what|which)(?: is| was|'s| does| did)|show(?: me)?|read(?: me)?|summari[sz]e|open"
    rf"|what is in|was (?:ist|steht in)|zeig(?: mir)?|worum geht es in) {_THE} {_ORDER} {_NOUN}{_FROM}{_ABOUT}"
    r"(?: say| about)?",
    re.IGNORECASE,
)
_NAME = r"(?P<sender>(?-i:[A-ZÄÖÜ])\w+(?: (?-i:[A-ZÄÖÜ])\w+)*)"
_WITHIN = re.compile(rf"\b{_THE} {_ORDER} {_NOUN}(?: (?:from|by|of|von) {_NAME})?", re.IGNORECASE)
_NEWEST_OF = re.compile(
    r"\b(?:the|my|our) (?P<new>latest|newest|most recent) (?P<words>[\w'-]+(?: [\w'-]+){0,2})", re.IGNORECASE
)
_BEFORE = re.compile(rf"\b{_NOUN}(?: (?:from|by|von) {_NAME})?\s*$", re.IGNORECASE)
_AFTER = re.compile(rf"(?:['’]s?)? {_NOUN}\b(?P<sender>)", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:wr(?:ite|ote|itten)|sen[dt]|geschrieben|geschickt|schrieb|schickte)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DateRestriction:
    """What a question is searched in because of the dates that it names."""

    items: tuple[DatedItem, ...]
    question: str  # without the words of a period
    words: str  # what is searched, as it is said to the person
    is_overview: bool = False  # whether nothing else is asked than what the one item is about


def find_restriction(question: str, collection: Collection) -> DateRestriction | None:
    """The documents that a question is about by their dates; None where it names none, or there are none."""
    text = " ".join(question.split())
    return _find_newest(text, collection) or _find_newest_of_name(text, collection) or _find_in_period(text, collection)


def _find_newest(text: str, collection: Collection) -> DateRestriction | None:
    """ "What is the latest mail from Anna about?", "What does the latest mail from Anna say about the boat?" """
    whole = _OVERVIEW.fullmatch(text.rstrip(" ?!."))
    if not (found := whole or _WITHIN.search(text)):
        return None
    wanted = Wanted(found["noun"], found["sender"] or "", (whole and whole["subject"]) or "")
    ordered = order_by_date(select_items(wanted, collection))
    if not ordered:
        return None
    best = ordered[-1 if found["old"] else 0]
    words = f"{found['new'] or found['old']} {found['noun']}: {best.describe()}"
    return DateRestriction((best,), text, words, is_overview=bool(whole))


def _find_newest_of_name(text: str, collection: Collection) -> DateRestriction | None:
    """ "What was decided at the latest meeting?", where several documents of that name have dates of their own."""
    found = _NEWEST_OF.search(text)
    words = found["words"].split() if found else []
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        items = select_items(Wanted(subject=name), collection)
        named = order_by_date(item for item in items if item.written and item.has_words(name))
        if found and len(named) > 1:
            return DateRestriction((named[0],), text, f"{found['new']} {name}: {named[0].describe()}")
    return None


def _find_in_period(text: str, collection: Collection) -> DateRestriction | None:
    """ "What do the notes from March 2025 say about the boat?", "What did Anna write last week?" """
    named = find_period(text, collection.today())
    if named is None:
        return None
    beside = _BEFORE.search(text[: named.start]) or _AFTER.match(text[named.end :])
    if not beside and not _WRITES.search(text):
        return None
    wanted = Wanted(beside["noun"], beside["sender"] or "") if beside else Wanted()
    items = select_items(replace(wanted, period=named.period), collection)
    days = text[named.start : named.end].strip()
    return DateRestriction(tuple(items), named.cut_out(text), f"{days}: {named.period}") if items else None


Answer = Callable[[Turn, Sequence[Message], Rows | None], TurnResult]  # of a question from rows of the index


def answer_by_date(
    turn: Turn, history: Sequence[Message], collection: Collection, rows: Rows | None, answer: Answer
) -> ChatTurn | None:
    """The answer from documents of a date, of these rows alone; None where none is named, or they have none."""
    restriction = find_restriction(turn.utterance, collection)
    if restriction is None:
        return None
    marked = mark_rows(restriction.items, collection)
    marked = marked if rows is None else marked & rows
    if not marked.any():
        return None
    if restriction.is_overview:
        (item,) = restriction.items
        overview = answer(replace(turn, utterance=f"Summarise {item.path}"), (), marked)
        return ChatTurn(turn.utterance, _present(replace(overview, query=Query(turn.utterance)), item))
    found = answer(replace(turn, utterance=restriction.question), history, marked)
    if says_not_found(found.response) or not found.response.used:
        return None
    return ChatTurn(turn.utterance, found, within=restriction.words)


def _present(overview: TurnResult, item: DatedItem) -> TurnResult:
    """What an item says, below its name and date; of one that is too short for a summary the first sentence.

    A message is named by its title, which has its subject, date and sender: the row that says so, too, is left out.
    """
    first = item.passages[0]
    name = first.title if item.is_message else item.describe()
    if not overview.response.used or says_not_found(overview.response):
        opening = Sentence(next(iter(split_sentences(first.text)), first.text), (first.id,))
        response = Response((opening,), name)
        return replace(overview, hits=(Hit(first.id, 1.0),), passages=item.passages, responses=(response,))
    header = ("from: ", "to: ", "date: ", "subject: ") if item.is_message else ()
    said = tuple(each for each in overview.response.sentences if not each.text.startswith(header))
    response = replace(overview.response, sentences=said or overview.response.sentences, direct=name)
    return replace(overview, responses=(response,))
