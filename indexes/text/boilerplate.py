"""What a web page has beside its text: navigation, bylines, dates, share lines, cookie notes, copyright.

`match_boilerplate` tells where such a thing ends that begins a text; `is_boilerplate` whether a text is nothing else.
"""

import re

from indexes.text.dates import MONTH
from indexes.words import compile_any

FRONT = compile_any("boilerplate.front", ignore_case=False, month=MONTH)
WHOLE = compile_any("boilerplate.whole", month=MONTH)
MAX_CHARACTERS = 240  # of what is boilerplate as a whole; more are hardly ever


def match_boilerplate(text: str) -> str:
    """The boilerplate that a text begins with, up to white space; empty where there is none."""
    found = FRONT.match(text)
    if not found or (text[found.end() :][:1].strip() and not found[0].endswith(" ")):
        return ""
    return found[0].strip()


def is_boilerplate(text: str) -> bool:
    """Whether a unit is nothing but boilerplate, or has no word at all."""
    short = text[: MAX_CHARACTERS + 1]
    if not re.search(r"[^\W\d_]", text) and not re.search(r"\d\S*\s?[%€$£°]|[€$£]\s?\d", short):
        return True
    return len(short) <= MAX_CHARACTERS and bool(WHOLE.fullmatch(short) or match_boilerplate(short) == short)
