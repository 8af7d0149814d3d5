"""Which documents there are of some days, of a kind, or in a language: "which documents changed last week?".

What could be asked of the documents, too ("which tables are there on Friday?"), lists only what there is.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.chat.selection.dated_items import DatedItem, Wanted, cut_period, list_items, order_by_date, select_items
from agent.chat.selection.days import find_periods
from agent.chat.selection.kinds import NOUN, find_kinds
from indexes.documents.collection import MAX_LISTED, Collection
from schemas.errors import list_with_limit

_LANGUAGE_NAMES = {
    "ar": "arabic arabisch",
    "bg": "bulgarian bulgarisch",
    "cs": "czech tschechisch",
    "da": "danish dänisch",
    "de": "german deutsch allemand alemán tedesco duits alemão",
    "el": "greek griechisch",
    "en": "english englisch anglais inglés inglese engels inglês",
    "es": "spanish spanisch espagnol español spagnolo spaans espanhol",
    "fi": "finnish finnisch",
    "fr": "french französisch français francés francese frans francês",
    "hu": "hungarian ungarisch",
    "it": "italian italienisch italien italiano italiaans",
    "ja": "japanese japanisch",
    "ko": "korean koreanisch",
    "nl": "dutch niederländisch néerlandais neerlandés olandese nederlands neerlandês holländisch",
    "no": "norwegian norwegisch",
    "pl": "polish polnisch",
    "pt": "portuguese portugiesisch portugais portugués portoghese portugees português",
    "ro": "romanian rumänisch",
    "ru": "russian russisch",
    "sv": "swedish schwedisch",
    "tr": "turkish türkisch",
    "uk": "ukrainian ukrainisch",
    "zh": "chinese chinesisch",
}
_CODES = {name: code for code, names in _LANGUAGE_NAMES.items() for name in names.split()}
_LANGUAGE = rf"(?P<language>{'|'.join(_CODES)})(?:e[nrms]?)?"
_DOCUMENTS = r"(?:documents?|docs|files?|texts?|dokumente|dateien|texte)"
_WHICH = r"(?:(?:and|please|so|und) )*(?:which|what|welche)(?: of (?:the|my|your|these))?"
_HAVE = r"(?:do (?:i|you|we) have|are there|are here|hast du|habe ich|gibt es)"
_SHOW = r"(?:list|show(?: me)?|name|zeig(?: mir)?|nenne)(?: (?:all|the|my|your|alle|die|meine))*"
_IN_LANGUAGE = re.compile(
    rf"{_WHICH} {_DOCUMENTS} (?:{_HAVE} )?(?:(?:are|sind) )?(?:written |geschrieben )?"
    rf"(?:(?:in|auf) )?(?:the )?{_LANGUAGE}"
    rf"(?: geschrieben)?|{_WHICH} {_LANGUAGE.replace('language', 'language2')} {_DOCUMENTS} {_HAVE}"
    rf"|{_SHOW} (?:{_LANGUAGE.replace('language', 'language3')} {_DOCUMENTS}"
    rf"|{_DOCUMENTS} in {_LANGUAGE.replace('language', 'language4')})",
    re.IGNORECASE,
)
_LANGUAGES = re.compile(
    rf"(?:in )?(?:which|what) languages (?:are|do) (?:the|my|your) {_DOCUMENTS}(?: have| in| written in)?"
    rf"|in welchen sprachen sind (?:die|meine) {_DOCUMENTS}",
    re.IGNORECASE,
)
_OF_KIND = re.compile(
    rf"{_WHICH} {_DOCUMENTS} (?:are|sind) (?P<noun>{NOUN})|{_WHICH} (?P<noun2>{NOUN}) {_HAVE}"
    rf"|{_SHOW} (?P<noun3>{NOUN})",
    re.IGNORECASE,
)
_ASK = (
    r"(?:(?:which|what|welche|list|show(?: me)?|zeig(?: mir)?|do (?:i|you|we) have|are there|gibt es)(?: any| of)?\s+)?"
    r"(?:(?:all|the|my|our|alle|die|meine)\s+)*"
)
_HELD = (
    r"(?:\s+(?:do (?:i|you|we) have|(?:are|were|is)(?: there)?|have|came|come|arrived"
    r"|did (?:i|we) (?:get|receive|write)"
    r"|habe ich|hast du|sind|gibt es|kamen|stammen|from|of|in|von|aus))*"
)
_OF_DAYS = re.compile(
    rf"{_ASK}(?P<noun>{NOUN})(?:\s+(?:from|by|von) (?P<sender>(?!the\b)[\w .'-]+?))??"
    rf"(?:\s+(?:about|on|regarding|über|zu) (?:(?:the|my|our) )?(?P<subject>[\w '-]+?))??{_HELD}",
    re.IGNORECASE,
)
_CHANGED = (
    r"(?:(?:(?:has|have|was|were|is|are|sind|ist|wurden?|hat|haben)\s+)?(?:sich\s+)?(?:been\s+)?"
    r"(?:changed|new|added|modified|edited|updated|geändert|neu|dazugekommen)(?:\s+worden)?"
    r"|did (?:i|we) (?:change|edit|add|modify))(?:\s+in (?:my|the) (?:files|folder|documents))?"
)
_CHANGES = re.compile(rf"(?:{_WHICH} (?P<noun>{NOUN})|what|was)(?:'s)?\s+{_CHANGED}", re.IGNORECASE)
_SURE = re.compile(r"(?:documents?|docs?|files?|e-?mails?|messages?|pdfs?|dokumente?n?|datei(?:en)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listing:
    """Documents that an utterance asks for by what they are, not by what they say."""

    wanted: Wanted
    words: str  # what was asked for: "documents in German"
    is_sure: bool = True  # whether the utterance cannot be a question to the documents
    language: str = ""  # ISO 639-1; "": any

    def select(self, collection: Collection) -> list[DatedItem]:
        """Those of them that there are, the newest first where days were asked for."""
        found = select_items(self.wanted, collection)
        if self.language:
            return [item for item in found if item.passages[0].language == self.language]
        return order_by_date(found) if self.wanted.period else found

    @property
    def _is_by_date(self) -> bool:
        return bool(self.wanted.period) and not self.wanted.by_change

    def _name(self, item: DatedItem) -> str:
        """An item with its date where that was asked for; else the file that it is of."""
        if self._is_by_date:
            return item.describe()
        return f"{item.path} ({item.changed})" if self.wanted.by_change and item.changed else item.path

    def describe(self, collection: Collection) -> str:
        """The reply."""
        found = self.select(collection)
        if not found:
            return f"I have no {self.words}."
        names = list(dict.fromkeys(map(self._name, found)))
        has_messages = any(item.name != item.path for item in found) and self._is_by_date
        total = "" if has_messages else f" of my {len(collection.list_documents())} documents"
        listed = ", ".join(list_with_limit(names, MAX_LISTED, "and {} more"))
        return f"{self.words[0].upper()}{self.words[1:]}: {len(names)}{total}: {listed}."


def find_listing(utterance: str, collection: Collection, *, is_sure: bool = False) -> Listing | None:
    """What the whole of an utterance asks to have listed; None for a question, and unless `is_sure` what may be one."""
    if not collection.is_folder:
        return None
    text = " ".join(utterance.split()).rstrip(" ?!.")
    for listing in (_read_languages(text), *_read_days(text, collection), _read_kind(text)):
        if listing and (is_sure or listing.is_sure or listing.select(collection)):
            return listing
    return None


def _read_languages(text: str) -> Listing | None:
    if not (found := _IN_LANGUAGE.fullmatch(text)):
        return None
    name = next(filter(None, found.groups())).lower()
    return Listing(Wanted(), f"documents in {_LANGUAGE_NAMES[_CODES[name]].split()[0].title()}", language=_CODES[name])


def _read_days(text: str, collection: Collection) -> Iterator[Listing]:
    for named in find_periods(text, collection.today()):
        rest, said = cut_period(text, named), text[named.start : named.end].strip()
        if found := _CHANGES.fullmatch(rest):
            noun, what = found["noun"] or "", f"{found['noun'] or 'documents'} changed {named.period}"
            wanted = Wanted(frozenset(find_kinds(noun)), period=named.period, by_change=True)
            if noun or not re.search(r"\d{4}", said):
                yield Listing(wanted, what, bool(_SURE.fullmatch(noun)))
        elif (dated := _read_wanted(rest)) and (found := _OF_DAYS.fullmatch(rest)):
            what = f"{found['noun']} dated {named.period}"
            yield Listing(replace(dated, period=named.period), what, bool(_SURE.fullmatch(found["noun"])))


def _read_wanted(text: str) -> Wanted | None:
    """ "Mails from Anna about the boat", without the days."""
    found = _OF_DAYS.fullmatch(text)
    return found and Wanted(frozenset(find_kinds(found["noun"])), found["sender"] or "", found["subject"] or "")


def find_wanted_days(text: str, collection: Collection) -> Wanted | None:
    """What a scope of days names: "the mails of 2025", "2025", "last week"; None for any other."""
    for named in find_periods(text, collection.today()):
        rest = cut_period(text, named)
        wanted = _read_wanted(rest) if rest else Wanted()
        if wanted:
            return replace(wanted, period=named.period)
    return None


def _read_kind(text: str) -> Listing | None:
    found = _OF_KIND.fullmatch(text)
    noun = next(filter(None, found.groups()), "") if found else ""
    kinds = frozenset(find_kinds(noun))
    return Listing(Wanted(kinds), noun, bool(_SURE.fullmatch(noun))) if kinds else None


def describe_languages(utterance: str, collection: Collection) -> str:
    """In which languages the documents are, where the utterance asks that; else ""."""
    if not collection.is_folder or not _LANGUAGES.fullmatch(" ".join(utterance.split()).rstrip(" ?!.")):
        return ""
    counts = Counter(item.passages[0].language for item in list_items(collection))
    names = {code: _LANGUAGE_NAMES.get(code, code).split()[0].title() for code in counts}
    return f"My documents are in {', '.join(f'{names[code]} ({count})' for code, count in counts.most_common())}."
