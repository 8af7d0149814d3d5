"""Numbers, amounts, dates and times as they stand in a sentence, in English and German, and what they are worth.

As values they are strict: an approximation, a range, and whatever could be read in two ways ("1.500 EUR") are none.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

from indexes.words import list_tables, list_words, match_any

_ENGLISH = (*list_words("numbers", ["en"])[1:], *list_words("tens"), *list_words("large_numbers", ["en"]))
_GERMAN = (*list_words("numbers", ["de"])[2:], *list_words("large_numbers", ["de"]))
_ONE_WORD = "|".join((*_ENGLISH, *_GERMAN))
DIGITS = r"\d{1,3}(?:[., ]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?"
SPELLED = rf"(?:a |an )?(?:{_ONE_WORD})(?:[- ](?:and )?(?:a )?(?:{_ONE_WORD}))*"
_SCALE = r"(?: (?:thousand|million|billion|Millionen|Milliarden)\b)?"
_NUMBER = rf"(?:(?<![\w.,:/-])[-−]?(?:{DIGITS}){_SCALE}|\b(?:{SPELLED})\b)"
_ABOUT = (
    r"(?:(?:no more than|not more than|no less than|more than|less than|fewer than|at most|at least|up to|about|around"
    r"|roughly|approximately|nearly|almost|over|under|etwa|rund|ungefähr|mindestens|höchstens|bis zu|knapp) )?"
)
RANGE = rf"{_ABOUT}(?:{_NUMBER}(?: ?(?:to|or|bis|-|–) ?{_NUMBER})?)"
# Units, by what they measure. Short ones count only right after digits or a space.
UNITS = {measure: "|".join(words) for measure, words in list_tables("units").items()}
# What a question's noun or adjective measures, where it is not named like its units.
MEASURES: dict[str, tuple[str, ...]] = {}
for _measure, _nouns in list_tables("measures").items():
    for _noun in _nouns:
        MEASURES[_noun] = (*MEASURES.get(_noun, ()), _measure)
_CURRENCY = r"(?:€|£|\$|EUR|USD|GBP|CHF|euros?|dollars?|pounds?|cents?|pence|francs?|kronor|kroner|Euro|Franken)"
_RATE = (
    r"(?: (?:an?|per|pro) (?:hour|day|night|week|month|year|person|head|item|glass|"
    r"Stunde|Tag|Nacht|Monat|Jahr|Person))?"
)
MONEY = re.compile(
    rf"{RANGE} ?{_CURRENCY}(?!\w){_RATE}|{_ABOUT}(?:€|£|\$|EUR |CHF |USD ) ?(?:{DIGITS}){_RATE}", re.IGNORECASE
)
MONTH = (
    rf"(?:{match_any('months', ['en'])}|Jan\.?|Feb\.?|Mar\.?|Apr\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?"
    rf"|{match_any('months', ['de'])})"
)
_GERMAN_DAYS = match_any("weekdays", ["de"])
WEEKDAY = (
    rf"(?:(?:{match_any('weekdays', ['en'])})s?|(?:{_GERMAN_DAYS})s?|(?:{_GERMAN_DAYS.lower()})s"
    r"|weekdays|weekends|workdays)"
)
YEAR = r"(?:1[0-9]\d\d|20\d\d)"
_ORDINAL = rf"(?:{match_any('ordinals')}|last)"
_CLOCK = (
    r"(?:\d{1,2}[:.]\d{2} (?:Uhr|a\.?m\b\.?|p\.?m\b\.?|o['’]clock)|\d{1,2}:\d{2}|\d{1,2} ?(?:Uhr|a\.?m\b\.?|"
    r"p\.?m\b\.?|o['’]clock)|"
    rf"(?:half past|(?:a )?quarter (?:past|to)) (?:\d{{1,2}}|{_ONE_WORD})|(?:{_ONE_WORD}) (?:o['’]clock|Uhr)|"
    rf"noon|midnight)"
)
_DAY = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{MONTH}(?:,? {YEAR})?|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? "
    rf"{YEAR})?|(?:the )?{_ORDINAL} (?:week |{WEEKDAY} )?(?:of|in) (?:each month|every month|the month|{MONTH})"
    rf"|(?:the )?(?:start|beginning|middle|end) of {MONTH}(?: {YEAR})?"
    rf"|\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{4}}|\d{{2}})?|{MONTH},? {YEAR})"
)
SEASON = r"(?:(?:early |late )?(?:spring|summer|autumn|winter)(?: (?:of )?" + YEAR + r")?)"
_MOMENT = rf"(?:{WEEKDAY}(?:,? (?:the )?{_DAY})?|{_DAY})"
_TO = r" ?(?:to|until|and|bis|und|-|–) ?"
_BOUND = r"(?:(?:not before|from|until|till|by|before|after|since|ab|bis|seit|vor|nach) )?"  # "Until 11:00."
_CLOCKS = rf"(?:(?:\d{{1,2}}(?:[:.]\d\d)?|{_ONE_WORD}){_TO}{_CLOCK}|{_CLOCK})"
DATE = re.compile(
    rf"(?<![\w.-]){_BOUND}(?:{_MOMENT}(?:{_TO}{_MOMENT})?(?:,? (?:at|from|um|ab|until) {_CLOCKS})?|"
    rf"{_CLOCKS}|{MONTH}{_TO}{MONTH}|{MONTH}(?![a-z])|{SEASON}|"
    rf"(?<!\d[ ,])(?<!number )(?<!type ){YEAR}(?![\w,.]*\d)(?! (?:euros?|km|m|g|kg|ml|mm|EUR|W|litres?)\b))(?!\w)"
)
_CLOCK_ONLY = re.compile(rf"(?<![\w.-]){_BOUND}{_CLOCKS}(?!\w)", re.IGNORECASE)
PART_OF_DATE = {
    "time": _CLOCK_ONLY,
    "uhrzeit": _CLOCK_ONLY,
    "year": re.compile(rf"(?<![\w.,-]){YEAR}(?![\w-])(?!,\d)"),
    "jahr": re.compile(rf"(?<![\w.,-]){YEAR}(?![\w-])(?!,\d)"),
    "month": re.compile(rf"\b{MONTH}(?!\w)"),
    "day": re.compile(rf"(?<![\w.-])(?:{_MOMENT}(?:{_TO}{_MOMENT})?)(?!\w)"),
    "weekday": re.compile(rf"\b{WEEKDAY}(?!\w)"),
    "hour": _CLOCK_ONLY,
}
FREQUENCY = re.compile(
    rf"{_ABOUT}(?:once|twice|(?:{_NUMBER}) times) (?:an?|every|each|per) \w+|(?:every|each) (?:(?:other|"
    rf"{_NUMBER}|{_ORDINAL}) )?"
    r"(?:second|minute|hour|day|night|morning|evening|week|month|year|half hour)s?\b|\b(?:hourly|daily|weekly|monthly"
    r"|yearly|annually|täglich|wöchentlich|monatlich|jährlich)\b|(?:einmal|zweimal|dreimal) (?:im|am|pro|in der) \w+"
    r"|(?:jede[nrs]?|alle) (?:\w+ )?(?:Stunde|Tag|Woche|Monat|Jahr)\w*",
    re.IGNORECASE,
)


_VALUE_OF = {
    **{word: value for words in (["en"], ["de"]) for value, word in enumerate(list_words("numbers", words))},
    **dict.fromkeys(("a", "an", "ein", "eine"), 1),
    **{word: 10 * value for value, word in enumerate(list_words("tens"), start=3)},
}
_BARE_NUMBER = re.compile(r"\d[\d.,]*\d|\d|[A-Za-zäöü]+")
CURRENCY_OF = {word: name for name, words in list_tables("currencies").items() for word in words}
# How many of the first unit of its group each is.
UNIT = {
    word: (group, Decimal(size.partition("/")[0]) / Decimal(size.partition("/")[2] or 1))
    for group, sizes in list_tables("sizes").items()
    for word, size in (pair.split(":") for pair in sizes)
}
_KNOWN = re.compile(rf"(?:{'|'.join(UNITS.values())})", re.IGNORECASE)
_PER = re.compile(
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
} | {"sept": 9}
_DATED = re.compile(
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
    bare = _PER.sub(" ", text)
    numbers = [
        (match, value) for match in _BARE_NUMBER.finditer(bare) if (value := _read_number(match.group())) is not None
    ]
    if len(numbers) != 1:
        return None
    [(number, value)] = numbers
    rate = _PER.search(text) or _PER.search(re.sub(r"\ban?\b", "", around))  # a night train is no rate
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
    found = _DATED.fullmatch(text.strip())
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
    texts = [" ".join(_PER.sub("", amount.text).split()).rstrip(" .") for amount in amounts]
    shown = _BARE_NUMBER.search(texts[0])
    assert shown is not None
    decimals = max(len(match.group().partition(".")[2]) for text in texts for match in re.finditer(r"\d[\d.,]*", text))
    total = f"{result:,.{decimals}f}"
    return f"{f' {sign} '.join(texts)} = {texts[0][: shown.start()]}{total}{texts[0][shown.end() :]}"
