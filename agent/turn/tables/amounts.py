"""Units, currencies and dates as cells have them, in English and German. What could be read in two ways is none."""

import re
from decimal import Decimal

from indexes.words import list_tables, list_words, match_any

MONTH = (
    rf"(?:{match_any('months', ['en'])}|Jan\.?|Feb\.?|Mar\.?|Apr\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?"
    rf"|{match_any('months', ['de'])})"
)
MONTH_OF = {
    name: number
    for language in ("en", "de")
    for number, month in enumerate(list_words("months", [language]), start=1)
    for name in (month.lower(), month[:3].lower())
} | {"sept": 9}
CURRENCY_OF = {word: name for name, words in list_tables("currencies").items() for word in words}
# How many of the first unit of its group each is.
UNIT = {
    word: (group, Decimal(size.partition("/")[0]) / Decimal(size.partition("/")[2] or 1))
    for group, sizes in list_tables("sizes").items()
    for word, size in (pair.split(":") for pair in sizes)
}
_DATED = re.compile(
    rf"(?:in\s+)?(?:(?P<iso>\d{{4}}-\d\d-\d\d)|(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? )?"
    rf"(?:(?P<month>{MONTH}),? )?(?P<year>\d{{4}}))",
    re.IGNORECASE,
)


def read_date(text: str) -> tuple[int, int, int] | None:
    """Year, month and day of a date with its year, 0 where a part is not said; None of any other text."""
    found = _DATED.fullmatch(text.strip())
    if not found or (found["day"] and not found["month"]):
        return None
    if found["iso"]:
        year, month, day = map(int, found["iso"].split("-"))
        return year, month, day
    month = MONTH_OF[found["month"][:3].lower()] if found["month"] else 0
    return int(found["year"]), month, int(found["day"] or 0)
