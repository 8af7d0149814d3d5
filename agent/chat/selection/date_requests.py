"""What a question says about the dates of documents: "the latest mail from Anna", "notes from March 2025".

Only what surely is about documents counts: a kind of documents stands beside the time, or a verb of writing. "The
latest episode" and "How long does the last week of the course take?" are questions like any other. English and German.
"""

import re
from dataclasses import dataclass

from agent.chat.selection.dated_items import DatedItem, Wanted, order_by_date, select_items
from agent.chat.selection.days import NamedPeriod, find_periods
from agent.chat.selection.kinds import NOUN, find_kinds
from indexes.documents.collection import Collection

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
