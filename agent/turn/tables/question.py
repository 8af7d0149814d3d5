"""What a question asks of a table: a count, a sum, a list, or which row has the most of something.

Only the form is recognised here; whether a table can answer is told by its words (`matching.py`).
"""

import re
from dataclasses import dataclass
from typing import Literal, cast

import msgspec

from indexes.text.analysis import ENGLISH
from indexes.words import read_file

Aim = Literal["count", "money", "amount", "sum", "list", "most", "least", "newest", "oldest"]


@dataclass(frozen=True, slots=True)
class TableLanguage:
    """How a language asks of tables, and what is said of rows in it. English questions have rules of their own.

    The patterns of how many, how much and which have the group "rest", or "rest2".
    """

    some_rows: str
    all_rows: str
    more_rows: tuple[str, str]
    sum_of: str
    counts: str = ""
    spending: tuple[str, ...] = ()
    which: str = ""  # before a superlative
    dearest: str = ""
    cheapest: str = ""
    neutral: frozenset[str] = frozenset()  # words that say nothing of which rows are meant


def _read_phrases(language: str) -> TableLanguage:
    said = read_file(language)["table_questions"]
    return msgspec.convert(said | {"neutral": said.get("neutral", "").split()}, TableLanguage)


LANGUAGES = {language: _read_phrases(language) for language in (ENGLISH, "de", "fr", "es", "it", "nl")}


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """What is asked, and the words that a table must account for."""

    aim: Aim
    rest: str
    measure: str = ""  # of a superlative: "money", "date" or "weight"; empty where a column must be named
    language: str = ENGLISH


def _read_foreign(text: str) -> TableQuestion | None:
    """What is asked in another language than English, given without "?"; None where none of them asks so."""
    for language, forms in [pair for pair in LANGUAGES.items() if pair[0] != ENGLISH]:
        if found := re.fullmatch(forms.which, text, re.IGNORECASE):
            for aim, words in (("most", forms.dearest), ("least", forms.cheapest)):
                rest, count = re.subn(rf"\b{words}\b", " ", found["rest"], flags=re.IGNORECASE)
                if count:
                    return TableQuestion(cast("Aim", aim), rest, "money", language)
        if found := re.fullmatch("|".join(forms.spending), text, re.IGNORECASE):
            return TableQuestion("money", found["rest"] or found["rest2"], language=language)
        if found := re.fullmatch(forms.counts, text, re.IGNORECASE):
            return TableQuestion("count", found["rest"], language=language)
    return None


_ASIDE = r"(?:(?:and|so|ok(?:ay)?|please|hi|hello|well|then|now),?\s+)*"
_POLITE = r"(?:(?:can|could|would) you (?:please )?|please )?"
_SHOW = rf"{_POLITE}(?:tell me|show me|give me|calculate|compute|work out|add up)\s+"
_SPENT = r"(?:spend|spent|pay|paid|cost|costs|expenses?|expenditure|earn|earned)"
_IN_ALL = r"(?:in total|altogether|in all|all in all|overall)"
_FORMS: tuple[tuple[Aim, str], ...] = (
    ("count", rf"{_ASIDE}(?:{_SHOW})?(?:for )?how many (?P<rest>.+)"),
    (
        "money",
        rf"{_ASIDE}how much (?:money )?"
        r"(?P<rest>(?:did|do|have|has|had) .*\b(?:spend|spent|pay|paid|earn|earned|cost)\b.*)",
    ),
    ("money", rf"{_ASIDE}what (?P<rest>(?:did|have|has) .*\b(?:spend|spent|pay|paid|cost)\b.*)"),
    (
        "money",
        rf"{_ASIDE}(?:how much|what) (?:money )?"
        rf"(?P<rest>(?:did|do|does|is|are|was|were|have|has) .*{_SPENT}.* {_IN_ALL}.*)",
    ),
    ("count", rf"{_ASIDE}(?:what(?:['’]s| is| was) |{_SHOW})the number of (?P<rest>.+)"),
    ("amount", rf"{_ASIDE}how much (?P<rest>(?!money\b)\w+(?: \w+){{0,2}}? (?:did|was|were|have|has|had)\b.+)"),
    (
        "sum",
        rf"{_ASIDE}(?:(?:what(?:['’]s| is| was| are| were) |{_SHOW})?(?:the )?(?:overall |grand )?(?:total|sum)"
        r"(?: (?:number|amount|sum|value))? (?:of|for) (?P<rest>.+))",
    ),
    (
        "sum",
        rf"{_ASIDE}(?:what(?:['’]s| is| was| are| were) |{_SHOW})(?:the |our )?(?:overall |grand )?total (?P<rest>.+)",
    ),
    (
        "list",
        rf"{_ASIDE}{_POLITE}(?:list|show|show me|give me|name|tell me|find)(?: me)? (?:all|every|each)(?: of)?"
        r"(?: (?:the|my|our))? (?P<rest>.+)",
    ),
    ("list", rf"{_ASIDE}{_POLITE}list (?:me )?(?:the|my|our) (?P<rest>.+)"),
    ("list", rf"{_ASIDE}(?:which|what) (?P<rest>(?!(?:is|was|does|has|its|his|this)\b)[\w-]+s\b .+)"),
)
_TIMES = re.compile(r"\bhow (?:often|many times)(?= (?:did|was|were|have|has|had)\b)", re.IGNORECASE)
_SUPERLATIVES: tuple[tuple[Aim, str, str], ...] = (
    ("most", r"(?:most expensive|dearest|priciest|costliest)", "money"),
    ("least", r"(?:cheapest|least expensive)", "money"),
    ("newest", r"(?:newest|latest|most recent)", "date"),
    ("oldest", r"(?:oldest|earliest)", "date"),
    ("most", r"heaviest", "weight"),
    ("least", r"lightest", "weight"),
    ("most", r"(?:highest|largest|biggest|greatest|most)", ""),
    ("least", r"(?:lowest|smallest|fewest|least)", ""),
)
_ASKS_WHICH = re.compile(
    rf"{_ASIDE}(?:{_SHOW})?(?:(?:which|what|who)\b(?:['’]s)?|(?=the\b))(?P<rest>.*)", re.IGNORECASE
)


def read_table_question(utterance: str) -> TableQuestion | None:
    """What is asked of a table; None of a question that no table has to be read through for."""
    text = " ".join(utterance.split()).rstrip(" ?!.")
    if re.search(r"[?!;]|\.\s", text):
        return None
    if found := _read_superlative(text):
        return found
    counted = _TIMES.sub("how many entries", text)
    for aim, pattern in _FORMS:
        if form := re.fullmatch(pattern, counted, re.IGNORECASE):
            return TableQuestion(aim, form["rest"])
    return _read_foreign(text.lstrip("¿¡ "))


def _read_superlative(text: str) -> TableQuestion | None:
    asked = _ASKS_WHICH.fullmatch(text)
    for aim, words, measure in _SUPERLATIVES if asked else ():
        pattern = rf"(?:the |our |my )?\b{words}\b"
        rest, count = re.subn(pattern, " ", asked["rest"] if asked else "", flags=re.IGNORECASE)
        if count == 1:
            return TableQuestion(aim, rest, measure)
    return None
