"""Documents, and the messages of mailboxes, with their dates.

The date of a message is that of its header; of a document the one in its name or title, else when the file was last
changed. Messages are in order by UTC; which day one is of goes by the local time zone. A question that names a date, or
the newest or oldest of a kind, is asked of those documents ("How long does the last week take?" is one like any other).
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np

from agent.chat.selection.days import NamedPeriod, Period, find_periods, format_day, to_period
from agent.chat.selection.kinds import NOUN, find_kinds, is_of_kind
from agent.chat.store import ChatTurn
from agent.turn.extractive_answer import says_not_found
from indexes.documents.collection import Collection
from indexes.documents.whole_documents import has_all_words, stem_path
from indexes.ranking.rankings import Rows
from indexes.text.sentences import split_sentences
from schemas.records import Hit, Message, Passage, Query, Response, Sentence, Turn, TurnResult

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


def _is_header(sentence: Sentence, item: DatedItem) -> bool:
    """Whether a sentence is the row that says who wrote when to whom, which the title has, too."""
    return item.is_message and sentence.text.startswith(("from: ", "to: ", "date: ", "subject: "))


def _present(overview: TurnResult, item: DatedItem) -> TurnResult:
    """What an item says, below its name and date; of one that is too short for a summary the first sentence.

    A message is named by its title, which has its subject, date and sender.
    """
    first = item.passages[0]
    name = first.title if item.is_message else item.describe()
    if overview.response.used and not says_not_found(overview.response):
        said = tuple(each for each in overview.response.sentences if not _is_header(each, item))
        response = replace(overview.response, sentences=said or overview.response.sentences, direct=name)
        return replace(overview, responses=(response,))
    opening = Sentence(next(iter(split_sentences(first.text)), first.text), (first.id,))
    response = Response((opening,), name)
    return replace(overview, hits=(Hit(first.id, 1.0),), passages=item.passages, responses=(response,))


_NEW = r"latest|newest|most recent|neueste[nrms]?|jüngste[nrms]?|aktuellste[nrms]?"
_OLD = r"oldest|earliest|älteste[nrms]?"
_LAST = r"(?:last|letzte[nrms]?)(?= (?:(?:e-?)?mails?|messages?|nachricht(?:en)?)\b)"
_ORDER = rf"(?:(?P<new>{_NEW}|{_LAST})|(?P<old>{_OLD}))"
_THE = r"(?:the|my|our|die|der|das|dem|den|meine[rmn]?|unsere[rmn]?)"
_FROM = r"(?: (?:from|by|of|sent by|written by|von) (?P<sender>(?!the\b|my\b)[^?,]+?))?"
_ABOUT = (
    r"(?: (?:about|on|regarding|concerning|that mentions?|über|zu|zum|zur) "
    r"(?:(?:the|my|our|die|das|der|den|dem) )?(?P<subject>[^?,]+?))?"
)
_OVERVIEWS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?:what|which)(?: is| was|'s)|show(?: me)?|read(?: me)?|summari[sz]e|open|what (?:does|did)|what is in"
        rf"|was (?:ist|steht in|sagt)|zeig(?: mir)?|worum geht es in) {_THE} {_ORDER} (?P<noun>{NOUN}){_FROM}{_ABOUT}"
        r"(?: say| about)?",
        rf"(?:which|what|welche[rs]?) (?P<noun>{NOUN}){_FROM}{_ABOUT} (?:is|was|ist|war) {_THE} {_ORDER}(?: one)?",
        rf"(?:which|what|welche[rs]?|welches) (?:is|was|ist|war) {_THE} {_ORDER} (?P<noun>{NOUN}){_FROM}{_ABOUT}",
    )
)
_NAME = r"(?P<sender>(?-i:[A-ZÄÖÜ])\w+(?: (?-i:[A-ZÄÖÜ])\w+)*)"
_WITHIN = re.compile(rf"\b{_THE} {_ORDER} (?P<noun>{NOUN})(?: (?:from|by|of|von) {_NAME})?", re.IGNORECASE)
_NEWEST_OF = re.compile(
    r"\b(?:the|my|our) (?P<new>latest|newest|most recent) (?P<words>[\w'-]+(?: [\w'-]+){0,2})", re.IGNORECASE
)
_ASKED_BY_NAME = re.compile(  # what `conclusions.editions` answers
    r"(?:which|what) (?:is|was|are|were) (?:the|my|our) (?:latest|newest|most recent)\b.*", re.IGNORECASE
)
_BEFORE = re.compile(rf"\b(?P<noun>{NOUN})(?: (?:from|by|von) {_NAME})?\s*$", re.IGNORECASE)
_AFTER = re.compile(rf"(?:['’]s?)? (?P<noun>{NOUN})\b", re.IGNORECASE)
_WRITES = re.compile(
    r"\b(?:wr(?:ite|ote|itten)|sen[dt]|e?mail(?:ed)?|geschrieben|geschickt|schrieb|schickte)\b", re.IGNORECASE
)


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
    return (
        _find_overview(text, collection)
        or _find_newest(text, collection)
        or _find_newest_of_name(text, collection)
        or _find_in_period(text, collection)
    )


def _find_overview(text: str, collection: Collection) -> DateRestriction | None:
    """ "What is the latest mail from Anna about?" """
    plain = text.rstrip(" ?!.")
    for pattern in _OVERVIEWS:
        if (found := pattern.fullmatch(plain)) and (best := _pick(found, collection)):
            return DateRestriction((best,), plain, _name_newest(found, best), is_overview=True)
    return None


def _find_newest(text: str, collection: Collection) -> DateRestriction | None:
    """ "What does the latest mail from Anna say about the boat?" """
    found = _WITHIN.search(text)
    if found is None:
        return None
    best = _pick(found, collection)
    return DateRestriction((best,), text, _name_newest(found, best)) if best else None


def _pick(found: re.Match[str], collection: Collection) -> DatedItem | None:
    """The newest or oldest of what is asked for; None where there is none."""
    groups = found.groupdict()
    sender = groups.get("sender") or ""
    wanted = Wanted(frozenset(find_kinds(found["noun"])), sender, groups.get("subject") or "")
    ordered = order_by_date(select_items(wanted, collection))
    if not ordered:
        return None
    return ordered[-1 if found["old"] else 0]


def _name_newest(found: re.Match[str], best: DatedItem) -> str:
    return f"{found['new'] or found['old']} {found['noun']}: {best.describe()}"


def _find_newest_of_name(text: str, collection: Collection) -> DateRestriction | None:
    """ "What was decided at the latest meeting?", where several documents of that name have dates of their own."""
    found = _NEWEST_OF.search(text)
    if found is None or _ASKED_BY_NAME.fullmatch(text):
        return None
    words = found["words"].split()
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        named = [
            item for item in select_items(Wanted(subject=name), collection) if item.written and item.is_named(name)
        ]
        if len(named) > 1:
            best = order_by_date(named)[0]
            return DateRestriction((best,), text, f"{found['new']} {name}: {best.describe()}")
    return None


def _find_in_period(text: str, collection: Collection) -> DateRestriction | None:
    """ "What do the notes from March 2025 say about the boat?", "What did Anna write last week?" """
    for named in find_periods(text, collection.today()):
        beside = _BEFORE.search(text[: named.start]) or _AFTER.match(text[named.end :])
        if beside is None and not _WRITES.search(text):
            continue
        groups = beside.groupdict() if beside else {}
        kinds = frozenset(find_kinds(groups.get("noun") or ""))
        sender = groups.get("sender") or ""
        items = select_items(Wanted(kinds, sender, period=named.period), collection)
        if items:
            days = text[named.start : named.end].strip()
            return DateRestriction(tuple(items), cut_period(text, named), f"{days}: {named.period}")
    return None


def cut_period(text: str, named: NamedPeriod) -> str:
    """A question without the words of a period."""
    left, right = text[: named.start].rstrip(), re.sub(r"^['’]s?(?= )", "", text[named.end :])
    return f"{left}{right}".strip()
