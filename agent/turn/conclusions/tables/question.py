"""What a question asks of a table: a count, a sum, a list, or which row has the most of something.

Only the form is recognised here; whether a table can answer is told by its words (`matching.py`).
"""

import re
from dataclasses import dataclass
from typing import Literal

from agent.turn.conclusions.tables.languages import read_foreign_question
from indexes.text.analysis import ENGLISH

Aim = Literal["count", "money", "amount", "sum", "list", "most", "least", "newest", "oldest"]
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


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """What is asked, and the words that a table must account for."""

    aim: Aim
    rest: str
    measure: str = ""  # of a superlative: "money", "date" or "weight"; empty where a column must be named
    language: str = ENGLISH


def read_table_question(utterance: str) -> TableQuestion | None:
    """What is asked of a table; None of a question that no table has to be read through for."""
    text = " ".join(utterance.split()).rstrip(" ?!.")
    if re.search(r"[?!;]|\.\s", text):
        return None
    found = _read_superlative(text) or _read_form(_TIMES.sub("how many entries", text))
    return found or _read_foreign(text)


def _read_foreign(text: str) -> TableQuestion | None:
    found = read_foreign_question(text)
    return TableQuestion(found.aim, found.rest, found.measure, found.language) if found else None


def _read_form(text: str) -> TableQuestion | None:
    for aim, pattern in _FORMS:
        if found := re.fullmatch(pattern, text, re.IGNORECASE):
            return TableQuestion(aim, found["rest"])
    return None


def _read_superlative(text: str) -> TableQuestion | None:
    asked = _ASKS_WHICH.fullmatch(text)
    for aim, words, measure in _SUPERLATIVES if asked else ():
        pattern = rf"(?:the |our |my )?\b{words}\b"
        rest, count = re.subn(pattern, " ", asked["rest"] if asked else "", flags=re.IGNORECASE)
        if count == 1:
            return TableQuestion(aim, rest, measure)
    return None
