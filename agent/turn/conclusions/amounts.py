"""Amounts as numbers with units that can be compared and added: "2,820 EUR", "three weeks", "1 June 2024".

Strict: an approximation, a range, and whatever could be read in two ways ("1.500 EUR") are no amounts.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

from agent.turn.spans.amounts_and_dates import MONTH, UNITS
from indexes.words import list_tables, list_words

_VALUE_OF = {
    **{word: value for words in (["en"], ["de"]) for value, word in enumerate(list_words("numbers", words))},
    **dict.fromkeys(("a", "an", "ein", "eine"), 1),
    **{word: 10 * value for value, word in enumerate(list_words("tens"), start=3)},
}
_NUMBER = re.compile(r"\d[\d.,]*\d|\d|[A-Za-zäöü]+")
CURRENCY_OF = {word: name for name, words in list_tables("currencies").items() for word in words}
# How many of the first unit of its group each is.
UNIT = {
    word: (group, Decimal(size.partition("/")[0]) / Decimal(size.partition("/")[2] or 1))
    for group, sizes in list_tables("sizes").items()
    for word, size in (pair.split(":") for pair in sizes)
}
_KNOWN = re.compile(rf"(?:{'|'.join(UNITS.values())})", re.IGNORECASE)
_RATE = re.compile(
    r"\b(?:an?|per|each|every|pro|je)\s+(?P<each>hour|day|night|week|month|year|person|head|item|child|adult|kilo|kg|litre"
    r"|Stunde|Tag|Nacht|Woche|Monat|Jahr|Person)\b|\b(?P<often>hourly|daily|nightly|weekly|monthly|yearly|annual(?:ly)?)\b",
    re.IGNORECASE,
)
_OFTEN = {"hourly": "hour", "daily": "day", "nightly": "night", "weekly": "week", "monthly": "month", "yearly": "year"}
_OFTEN |= {"annual": "year", "annually": "year"}
MONTH_OF = {
    name: number
    for language in ("en", "de")
    for number, month in enumerate(list_words("months", [language]), start=1)
    for name in (month.lower(), month[:3].lower())
}
_DATE = re.compile(
    rf"(?:in\s+)?(?:(?P<iso>\d{{4}}-\d\d-\d\d)|(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? )?"
    rf"(?:(?P<month>{MONTH}),? )?(?P<year>\d{{4}}))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of a unit. Amounts of the same unit can be compared."""

    value: Decimal
    unit: str  # "EUR per night", "minute", "date"
    text: str  # as it stands in its sentence


def read_amount(text: str, around: str = "") -> Amount | None:
    """An amount of money or of a measure; `around` is its clause, which may say for what time or for whom it is."""
    bare = _RATE.sub(" ", text)
    numbers = [(match, value) for match in _NUMBER.finditer(bare) if (value := _read_number(match.group())) is not None]
    if len(numbers) != 1:
        return None
    [(number, value)] = numbers
    rate = _RATE.search(text) or _RATE.search(re.sub(r"\ban?\b", "", around))  # a night train is no rate
    unit = " ".join(f"{bare[: number.start()]} {bare[number.end() :]}".split()).lower().rstrip(".")
    currency = CURRENCY_OF.get(unit, "")
    if not unit:
        return None
    if currency:
        return Amount(value, f"{currency} per {_name_rate(rate)}" if rate else currency, text)
    group, size = UNIT.get(unit, (unit if _KNOWN.fullmatch(unit) else "", Decimal(1)))
    return Amount(value * size, group, text) if group else None


def read_date(text: str) -> Amount | None:
    """A date with its year, as a number that grows with time: 20240601 of "1 June 2024", 2024 of "2024"."""
    found = _DATE.fullmatch(text.strip())
    if not found or (found["day"] and not found["month"]):
        return None
    if found["iso"]:
        return Amount(Decimal(found["iso"].replace("-", "")), "day", text)
    if not found["month"]:
        return Amount(Decimal(found["year"]), "year", text)
    month = MONTH_OF[found["month"][:3].lower()]
    value = int(found["year"]) * 10000 + month * 100 + int(found["day"] or 0)
    return Amount(Decimal(value), "day" if found["day"] else "month of a year", text)


def _name_rate(rate: re.Match[str]) -> str:
    return _OFTEN[rate["often"].lower()] if rate["often"] else rate["each"].lower()


def _read_number(word: str) -> Decimal | None:
    """The value of digits or of a number word; None of any other word, and of what could be two numbers."""
    if not word[0].isdigit():
        value = _VALUE_OF.get(word.lower())
        return None if value is None else Decimal(value)
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", word):
        return Decimal(word.replace(",", ""))
    if re.fullmatch(r"\d+(?:\.\d{1,2})?", word):
        return Decimal(word)
    return Decimal(word.replace(",", ".")) if re.fullmatch(r"\d+,\d{1,2}", word) else None


def write_calculation(amounts: list[Amount], sign: str, result: Decimal) -> str:
    """The computation as it is shown: "94 EUR + 12 EUR = 106 EUR"."""
    texts = [" ".join(_RATE.sub("", amount.text).split()).rstrip(" .") for amount in amounts]
    shown = _NUMBER.search(texts[0])
    assert shown is not None
    decimals = max(len(match.group().partition(".")[2]) for text in texts for match in re.finditer(r"\d[\d.,]*", text))
    total = f"{result:,.{decimals}f}"
    return f"{f' {sign} '.join(texts)} = {texts[0][: shown.start()]}{total}{texts[0][shown.end() :]}"
