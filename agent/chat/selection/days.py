"""Days as people name them: "yesterday", "last week", "in March 2025", "since Monday", "letzten Monat"."""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from indexes.text.dates import DATE, MONTH, MONTHS, to_iso

_DAY_NAMES = (
    "monday montag",
    "tuesday dienstag",
    "wednesday mittwoch",
    "thursday donnerstag",
    "friday freitag",
    "saturday samstag",
    "sunday sonntag",
)
_WEEKDAYS = {name: number for number, names in enumerate(_DAY_NAMES) for name in names.split()}
_DAYS_AGO = {"today": 0, "heute": 0, "yesterday": 1, "gestern": 1, "the day before yesterday": 2, "vorgestern": 2}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_GERMAN_NUMBERS = ("einem", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf")
_UNITS = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30, "year": 365, "jahr": 365}
_UNIT = r"days?|weeks?|months?|years?|tag(?:e|en)?|wochen?|monat(?:e|en|s)?|jahr(?:e|en|es)?"
_PAST, _THIS = r"last|past|previous|(?:letzt|vergangen|vorig)e[nrms]?", r"this|(?:the )?current|diese[nrms]?"
_NUMBER = rf"\d{{1,3}}|{'|'.join((*_NUMBERS, *_GERMAN_NUMBERS))}"
_WEEKDAY = "|".join(_WEEKDAYS)
_LINK = (
    r"(?:(?:of|in|from|on|during|within|for|for the year|von|vom|aus|aus dem jahr|am|im|in der|in den"
    r"|während der|de|del|di|van|du|em|en)\s+)?"
)
_RELATION = r"(?:(?P<relation>since|after|before|until|till|up to|seit|nach|vor|bis)\s+)?"
PERIOD = re.compile(
    rf"(?<![\w.-])(?:{_RELATION}{_LINK}(?:the |dem |der |den )?(?:"
    rf"(?P<ago>{'|'.join(sorted(_DAYS_AGO, key=len, reverse=True))})"
    rf"|(?:{_PAST})\s+(?P<count>{_NUMBER})\s+(?P<units>{_UNIT})"
    rf"|(?:(?P<past>{_PAST})|(?P<this>{_THIS}))\s+(?P<unit>{_UNIT}|{_WEEKDAY}|{MONTH})"
    rf"|(?P<weekday>{_WEEKDAY})"
    rf"|(?P<date>{DATE.pattern.replace('P<', 'P<d_').replace('P=', 'P=d_')})"
    rf"|(?P<month>{MONTH})))(?![\w-])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Period:
    """Days that belong together, both ends included."""

    first: date
    last: date

    def __contains__(self, other: object) -> bool:
        """Whether all of another period is in this one."""
        return isinstance(other, Period) and self.first <= other.first and other.last <= self.last

    def __str__(self) -> str:
        if self.first == self.last:
            return format_day(self.first)
        if self.first == date.min:
            return f"until {format_day(self.last)}"
        return f"{format_day(self.first)} to {format_day(self.last)}"


@dataclass(frozen=True, slots=True)
class NamedPeriod:
    """A period where a text names it."""

    period: Period
    start: int  # of its words in the text, with the preposition before them
    end: int


def format_day(day: date) -> str:
    """`2 March 2025`."""
    return f"{day.day} {day:%B %Y}"


def to_period(iso: str) -> Period | None:
    """The days of `2025`, `2025-03` or `2025-03-11`; None where there is no such day."""
    year, month, day = (*map(int, iso.split("-")), 0, 0)[:3]
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    last = first if day else date(year, month or 12, monthrange(year, month or 12)[1])
    return Period(first, last)


def find_periods(text: str, today: date) -> list[NamedPeriod]:
    """The periods that a text names, in its order."""
    found = ((match, _read_period(match, today)) for match in PERIOD.finditer(text))
    return [NamedPeriod(period, match.start(), match.end()) for match, period in found if period]


def _read_period(found: re.Match[str], today: date) -> Period | None:
    groups = {name: text.casefold() for name, text in found.groupdict().items() if text}
    if found[0].casefold() == groups.get("month"):
        return None  # "may" is no month without "in"
    named = _read_named(groups, found, today)
    return named and _relate(groups.get("relation", ""), named, today)


def _read_named(groups: Mapping[str, str], found: re.Match[str], today: date) -> Period | None:
    if "ago" in groups:
        return _one_day(today - timedelta(_DAYS_AGO[groups["ago"]]))
    if "count" in groups:
        days = _to_number(groups["count"]) * _UNITS[_find_unit(groups["units"])]
        return Period(today - timedelta(days), today)
    if "unit" in groups:
        return _read_unit(groups["unit"], today, is_past="past" in groups)
    if "weekday" in groups:
        return _one_day(_go_back(_WEEKDAYS[groups["weekday"]], today + timedelta(1)))
    if "date" in groups:
        plain = DATE.search(found["date"])
        return to_period(iso) if plain and (iso := to_iso(plain)) else None
    return _read_month(MONTHS[groups["month"]], today)


def _read_unit(unit: str, today: date, *, is_past: bool) -> Period | None:
    """ "Last week", "this month", "last Monday", "last March": of the calendar."""
    if unit in _WEEKDAYS:
        return _one_day(_go_back(_WEEKDAYS[unit], today))
    if unit in MONTHS:
        return _read_month(MONTHS[unit], today)
    length = _UNITS[_find_unit(unit)]
    if length == 1:
        return _one_day(today - timedelta(is_past))
    if length == 7:
        monday = today - timedelta(today.weekday() + 7 * is_past)
        return Period(monday, monday + timedelta(6))
    if length == 30:
        end = today.replace(day=1) - timedelta(1) if is_past else today
        return to_period(f"{end:%Y-%m}")
    return to_period(f"{today.year - is_past}")


def _read_month(month: int, today: date) -> Period | None:
    """The latest month of this name that has begun."""
    return to_period(f"{today.year - (month > today.month)}-{month:02}")


def _relate(relation: str, named: Period, today: date) -> Period:
    if relation in ("since", "seit"):
        return Period(named.first, max(today, named.last))
    if relation in ("after", "nach"):
        return Period(named.last + timedelta(1), max(today, named.last + timedelta(1)))
    if relation in ("before", "vor"):
        return Period(date.min, named.first - timedelta(1))
    return Period(date.min, named.last) if relation else named


def _go_back(weekday: int, before: date) -> date:
    """The latest such day before a day."""
    return before - timedelta((before.weekday() - weekday - 1) % 7 + 1)


def _one_day(day: date) -> Period:
    return Period(day, day)


def _find_unit(word: str) -> str:
    return next(unit for unit in _UNITS if word.startswith(unit))


def _to_number(word: str) -> int:
    if word.isdecimal():
        return int(word)
    return (_NUMBERS if word in _NUMBERS else _GERMAN_NUMBERS).index(word) + 1
