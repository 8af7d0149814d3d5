"""Questions that are asked of documents of a date: "What does the latest mail say about the boat?", "... last week"."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.chat.dated_documents import (
    ABOUT,
    FROM,
    NOUN,
    DatedItem,
    Wanted,
    find_period,
    mark_rows,
    order_by_date,
    select_items,
)
from agent.chat.store import ChatTurn
from agent.turn.extractive_answer import says_not_found
from indexes.documents.collection import Collection
from indexes.ranking.rankings import Rows
from indexes.text.sentences import split_sentences
from schemas.records import Hit, Message, Query, Response, Sentence, Turn, TurnResult

_THE = r"(?:the|my|our|die|der|das|dem|den|meine[rmn]?)"
_LAST = r"(?:last|letzte[nrms]?)(?= (?:e-?)?(?:mail|message|nachricht))"
_ORDER = rf"(?:(?P<new>latest|newest|most recent|neueste[nrms]?|{_LAST})|(?P<old>oldest|earliest|älteste[nrms]?))"
_OVERVIEW = re.compile(
    rf"(?:(?:what|which)(?: is| was|'s| does| did)|show(?: me)?|read(?: me)?|summari[sz]e|open"
    r"|what is in|was (?:ist|steht in)|zeig(?: mir)?|worum geht es in)"
    rf" {_THE} {_ORDER} (?P<noun>{NOUN}){FROM}{ABOUT}(?: say| about)?",
    re.IGNORECASE,
)
_NAME = r"(?P<sender>(?-i:[A-ZÄÖÜ])\w+(?: (?-i:[A-ZÄÖÜ])\w+)*)"
_WITHIN = re.compile(rf"\b{_THE} {_ORDER} (?P<noun>{NOUN})(?: (?:from|by|of|von) {_NAME})?", re.IGNORECASE)
_NEWEST_OF = re.compile(
    r"\b(?:the|my|our) (?P<new>latest|newest|most recent) (?P<words>[\w'-]+(?: [\w'-]+){0,2})", re.IGNORECASE
)
_BEFORE = re.compile(rf"\b(?P<noun>{NOUN})(?: (?:from|by|von) {_NAME})?\s*$", re.IGNORECASE)
_AFTER = re.compile(rf"(?:['’]s?)? (?P<noun>{NOUN})\b(?P<sender>)", re.IGNORECASE)
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
