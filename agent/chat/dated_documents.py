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

import numpy as np

from agent.chat.store import ChatTurn
from agent.turn.extractive_answer import says_not_found
from agent.turn.question_words import stem_words
from indexes.documents.collection import ENDINGS, Collection, has_all_words, name_documents, stem_path
from indexes.text.analysis import ENGLISH
from indexes.text.dates import Period, find_period, to_period
from indexes.text.sentences import split_sentences
from schemas.records import Hit, Message, Passage, Query, Response, Sentence, Turn, TurnResult, find_document

MAX_WORDS_OF_OVERVIEW = 1  # that mean something beside what names a document: "What was decided at ...?"
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
        return find_document(self.name)

    @property
    def is_message(self) -> bool:
        """Whether it has the moment at which it was sent."""
        return "T" in self.written

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        index = self.collection.index
        return index.read(index.get_ids(self.numbers))

    @cached_property
    def moment(self) -> datetime | None:
        """When a message was sent, or else the file last changed; None where it is gone."""
        if self.is_message:
            return datetime.fromisoformat(self.written)
        status = find_status(self.path, self.collection)
        return datetime.fromtimestamp(status.st_mtime, UTC) if status else None

    @property
    def period(self) -> Period | None:
        """The days of its own date, else the day on which the file was changed; None where it is gone."""
        if (period := to_period(self.written)) or not self.moment:
            return period
        return Period(day := self.moment.astimezone().date(), day)

    @property
    def order(self) -> str:
        """What items are in order by: the moment in UTC as far as it is known. Of one that is gone ""."""
        return self.written or (self.moment.isoformat() if self.moment else "")

    def describe(self) -> str:
        """Its name and date: `(2 March 2025)`, of a month `(2025-03)`, without one of its own `(changed on ...)`."""
        if not self.period:
            return self.name
        changed = "" if self.written else "changed on "
        return f"{self.name} ({self.written if 0 < len(self.written) < 10 else f'{changed}{self.period}'})"

    def has_words(self, words: str, *texts: str) -> bool:
        """Whether its path and title, or other texts, have all of some words, in the language of the document."""
        first = self.passages[0]
        return has_all_words(" ".join(texts or (self.path, first.title)), words, first.language)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items are asked for: all that is given has to hold."""

    noun: str = ""  # as it was said: "mails"; "" for documents of any kind
    sender: str = ""  # of a message; of another document in its path or title
    subject: str = ""
    period: Period | None = None
    order: str = ""  # as it was said, "latest" or "oldest": then the first one alone
    is_list: bool = False  # whether they are to be listed

    @property
    def kind(self) -> str:
        return next((word for word in ENDINGS if word in self.noun.casefold()), "document")

    @property
    def is_of_all(self) -> bool:
        """Whether any document will do."""
        return "" in ENDINGS[self.kind] and not (self.sender or self.subject or self.period or self.order)

    def fits(self, item: DatedItem) -> bool:
        """Whether an item is asked for. What is quickly seen is looked at first."""
        is_of_kind = item.path.casefold().endswith(ENDINGS[self.kind]) or has_all_words(item.path, self.kind, ENGLISH)
        if not is_of_kind or (self.period and item.period not in self.period):
            return False
        if self.sender:
            named = _SENDER.search(item.passages[0].title)
            if not item.has_words(self.sender, *([named["sender"]] if named else [])):
                return False
        texts = (f"{passage.title} {passage.text}" for passage in item.passages)
        return not self.subject or item.has_words(self.subject, item.path, *texts)


def find_status(path: str, collection: Collection) -> os.stat_result | None:
    """That of the file of a document; None where it is gone."""
    try:
        return collection.locate(path).stat()
    except (OSError, ValueError):
        return None


def list_items(collection: Collection) -> list[DatedItem]:
    """The documents of a folder, and of mailboxes the messages, in the order of the index."""
    numbers: dict[str, list[int]] = {}
    asked = collection.list_numbers()
    for number, id in zip(asked, collection.index.get_ids(asked), strict=True):
        message = _MESSAGE.fullmatch(id)
        numbers.setdefault(message[1] if message else find_document(id), []).append(number)
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
    fitting = [item for item in items if wanted.fits(item)]
    if not wanted.order:
        return fitting
    by_date = order_by_date(fitting)
    return by_date[-1:] if _OLD.fullmatch(wanted.order) else by_date[:1]


def order_by_date(items: Iterable[DatedItem]) -> list[DatedItem]:
    """The newest first, without those that are gone."""
    return sorted((item for item in items if item.order), key=lambda item: (item.order, item.name), reverse=True)


def keep_to_items(items: Iterable[DatedItem], collection: Collection) -> Collection:
    rows = np.zeros(len(collection.index), bool)
    rows[[number for item in items for number in item.numbers]] = True
    return replace(collection, rows=rows)


# How documents are named. Of a phrase the whole is matched, in a question what stands beside the rest.

_NOUN = rf"(?P<noun>(?:e-?)?(?:{'|'.join(ENDINGS)})(?:en|[sen])?)"
_LAST = r"(?:last|letzte[nrms]?)(?= (?:e-?)?(?:mail|message|nachricht))"
_OLD = re.compile(r"oldest|earliest|älteste[nrms]?", re.IGNORECASE)
_NEW = r"latest|newest|most recent"
_ORDER = rf"(?P<order>{_NEW}|neueste[nrms]?|{_LAST}|{_OLD.pattern})"
_THE = r"(?:the|my|our|die|der|das|dem|den|meine[rmn]?)"
_HAVE = (
    r"(?:do (?:i|you|we) have|have you(?: got| read)?|are there|are in (?:the|this) folder|can (?:you read|i ask)"
    r"|hast du|habe ich|gibt es)"
)
_ASKS = (
    r"(?:what|which|how many|welche)|(?P<show>list|show(?: me)?|do you have|zeig(?: mir)?)"
    r"|(?P<tell>(?:what|which)(?: is| was|'s| does| did)|read(?: me)?|summari[sz]e|open|what is in"
    r"|was (?:ist|steht in)|worum geht es in)"
)
_PHRASE = re.compile(
    rf"(?:(?:and|so|please|can you|und|bitte) )*(?:(?:{_ASKS}) )?(?:(?:all|of|any|alle|your|{_THE}) )*"
    rf"(?:{_ORDER} )?{_NOUN}(?P<have> {_HAVE})?"
    r"(?: (?:from|by|von) (?P<sender>(?!the\b)[\w .'-]+?))??"
    r"(?: (?:about|on|regarding|über|zu) (?:(?:the|my|our) )?(?P<subject>[\w '-]+?))??"
    rf"(?(order)(?: say| about)?|(?: {_HAVE}| (?:came|arrived|kamen|are|is|from|of|von))*)(?:,? please)?",
    re.IGNORECASE,
)
_BY_NAME = r"(?: (?:from|by|of|von) (?P<sender>(?-i:[A-ZÄÖÜ])\w+(?: (?-i:[A-ZÄÖÜ])\w+)*))?"
_OWNER = r"(?P<owner>(?-i:[A-ZÄÖÜ])\w+(?: (?-i:[A-ZÄÖÜ])\w+)*)['’]s?"
_WITHIN = re.compile(rf"\b(?:{_OWNER}|{_THE}) {_ORDER} {_NOUN}{_BY_NAME}", re.IGNORECASE)
_NEWEST_OF = re.compile(rf"\b(?:the|my|our) (?P<order>{_NEW}) (?P<words>[\w'-]+(?: [\w'-]+){{0,2}})", re.IGNORECASE)
_BEFORE = re.compile(rf"\b{_NOUN}{_BY_NAME}\s*$", re.IGNORECASE)
_AFTER = re.compile(rf"(?:['’]s?)? {_NOUN}\b(?P<sender>)", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:wr(?:ite|ote|itten)|sen[dt]|geschrieben|geschickt|schrieb|schickte)\b", re.IGNORECASE)


def read_wanted(text: str, collection: Collection) -> Wanted | None:
    """What the whole of a phrase names: "the mails of 2025", "which PDFs do you have"; None for any other."""
    named = find_period(text, collection.today()) if collection.is_folder else None
    rest = named.cut_out(text) if named else text
    if named and not rest:
        return Wanted(period=named.period)
    found = _PHRASE.fullmatch(rest)
    if named and not found:
        named, found = None, _PHRASE.fullmatch(text)
    if not found or (found["tell"] and not found["order"]):
        return None
    sender, subject, order = (found[part] or "" for part in ("sender", "subject", "order"))
    period = named.period if named else None
    return Wanted(found["noun"], sender, subject, period, order, bool(found["show"] or found["have"]))


def find_listing(utterance: str, collection: Collection) -> Wanted | None:
    """What the whole of an utterance asks to have listed; None for a question, and for what may be one."""
    wanted = read_wanted(" ".join(utterance.split()).rstrip(" ?!."), collection)
    if not wanted or not wanted.noun or wanted.order:
        return None
    is_asked = wanted.is_list and not wanted.sender and (collection.is_folder or not wanted.subject)
    return wanted if wanted.period or is_asked else None


def describe_listing(wanted: Wanted, collection: Collection) -> str:
    """The documents that were asked for, those first whose names have the subject, and the newest before others."""
    if wanted.is_of_all or not collection.is_folder:
        return collection.describe()
    days = f" dated {wanted.period}" if wanted.period else ""
    about = f" about “{wanted.subject}”" if wanted.subject else ""
    found = order_by_date(select_items(wanted, collection))
    if not found:
        return f"I have no {wanted.noun}{about}{days}."
    if wanted.subject:
        found.sort(key=lambda item: not item.has_words(wanted.subject))
    noun = wanted.noun[0].upper() + wanted.noun[1:]
    return f"{noun}{about}{days}: {name_documents([item.describe() for item in found])}."


@dataclass(frozen=True, slots=True)
class DateRestriction:
    """What a question is searched in because of the dates that it names."""

    items: Sequence[DatedItem]
    question: str  # without the words of a period
    words: str  # what is searched, as it is said to the person
    is_overview: bool = False  # whether nothing else is asked than what the one item is about
    rest: str = ""  # of the question, without the words that name the one item


def find_restriction(question: str, collection: Collection) -> DateRestriction | None:
    """The documents that a question is about by their dates; None where it names none, or there are none.

    "What is the latest mail from Anna about?", "What does the latest mail from Anna say about the boat?"
    """
    text = " ".join(question.split())
    whole = read_wanted(text.rstrip(" ?!."), collection)
    wanted = whole if whole and whole.order else None
    if not wanted and (found := _WITHIN.search(text)):
        wanted = Wanted(found["noun"], found["owner"] or found["sender"] or "", order=found["order"])
    if wanted and (items := select_items(wanted, collection)):
        words = f"{wanted.order} {wanted.noun}: {items[0].describe()}"
        rest = _WITHIN.sub("", text)
        return DateRestriction(items, text, words, wanted is whole, rest)
    return _find_newest_of_name(text, collection) or _find_in_period(text, collection)


def _find_newest_of_name(text: str, collection: Collection) -> DateRestriction | None:
    """ "What was decided at the latest meeting?", where several documents of that name have dates of their own."""
    if not (found := _NEWEST_OF.search(text)):
        return None
    words = found["words"].split()
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        items = select_items(Wanted(subject=name), collection)
        named = order_by_date(item for item in items if item.written and item.has_words(name))
        if len(named) > 1:
            words = f"{found['order']} {name}: {named[0].describe()}"
            return DateRestriction(named[:1], text, words, rest=text.replace(f"{found['order']} {name}", ""))
    return None


def _find_in_period(text: str, collection: Collection) -> DateRestriction | None:
    """ "What do the notes from March 2025 say about the boat?", "What did Anna write last week?" """
    named = find_period(text, collection.today())
    if named is None:
        return None
    beside = _BEFORE.search(text[: named.start]) or _AFTER.match(text[named.end :])
    if not beside and not _WRITES.search(text):
        return None
    noun, sender = (beside["noun"], beside["sender"] or "") if beside else ("", "")
    items = select_items(Wanted(noun, sender, period=named.period), collection)
    days = text[named.start : named.end].strip()
    return DateRestriction(items, named.cut_out(text), f"{days}: {named.period}") if items else None


Answer = Callable[[Turn, Sequence[Message], Collection], TurnResult]  # of a question from the passages of a collection


def answer_by_date(turn: Turn, history: Sequence[Message], collection: Collection, answer: Answer) -> ChatTurn | None:
    """The answer from documents of a date; None where none is named, or they have none."""
    restriction = find_restriction(turn.utterance, collection)
    if restriction is None:
        return None
    kept = keep_to_items(restriction.items, collection)
    if not restriction.is_overview:
        found = answer(replace(turn, utterance=restriction.question), history, kept)
        if found.response.used and not says_not_found(found.response):
            return ChatTurn(turn.utterance, found, within=restriction.words)
        if not restriction.rest or len(set(stem_words(restriction.rest))) > MAX_WORDS_OF_OVERVIEW:
            return None
    (item,) = restriction.items
    overview = answer(replace(turn, utterance=f"Summarise {item.path}"), (), kept)
    return ChatTurn(turn.utterance, _present(replace(overview, query=Query(turn.utterance)), item))


def _present(overview: TurnResult, item: DatedItem) -> TurnResult:
    """What an item says, below its name and date; of one that is too short for a summary the first sentence.

    A message is named by its title, which has its subject, date and sender.
    """
    first = item.passages[0]
    name = first.title if item.is_message else item.describe()
    if not overview.response.used or says_not_found(overview.response):
        opening = Sentence(next(iter(split_sentences(first.text)), first.text), (first.id,))
        response = Response((opening,), name)
        return replace(overview, hits=(Hit(first.id, 1.0),), passages=item.passages, responses=(response,))
    response = replace(overview.response, direct=name, chance=None)
    return replace(overview, responses=(response,))
