"""Dates as people write them in titles and questions, with the months of seven languages, and periods of days."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta

from indexes.words import LANGUAGES, list_words

MONTHS = {
    name: number
    for language in LANGUAGES
    for number, names in enumerate(list_words("month_names", [language]), start=1)
    for name in names.split("/")
}
MONTH = f"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})"  # a pattern, for text in any case
YEAR = r"(?:19|20)\d\d"
_MM, _DD = r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
DATE = re.compile(
    rf"(?<!\d)(?P<year>{YEAR})(?:(?P<join>[-_.]?)(?P<month>{_MM})(?P=join)(?P<day>{_DD})|[-_](?P<month2>{_MM}))?(?!\d)"
    rf"|(?<!\d)(?P<day3>\d?\d)\.(?P<month3>\d?\d)\.(?P<year3>{YEAR})(?!\d)"
    rf"|(?:(?<!\d)(?P<day4>\d?\d)(?:\.|st|nd|rd|th|º)?(?: (?:of|de))? )?\b(?P<name4>{MONTH})\.?(?: de)?"
    rf" (?P<year4>{YEAR})(?!\d)"
    rf"|\b(?P<name5>{MONTH})\.? (?P<day5>\d?\d)(?:st|nd|rd|th)?,? (?P<year5>{YEAR})(?!\d)",
    re.IGNORECASE,
)


def read_date(text: str) -> str:
    """The one date of a text as `2025`, `2025-03` or `2025-03-11`; "" where there is none, or several."""
    found = {to_iso(match) for match in DATE.finditer(text)} - {""}
    longest = max(found, key=len, default="")
    return longest if all(longest.startswith(date) for date in found) else ""


def to_iso(found: re.Match[str]) -> str:
    """A match of `DATE` as far as it goes: `2025-03`; "" where there is no such month or day."""
    groups = {name.rstrip("2345"): text for name, text in found.groupdict().items() if text}
    month = MONTHS[groups["name"].lower()] if "name" in groups else int(groups.get("month", 0))
    day = int(groups.get("day", 0))
    if month > 12 or day > 31 or (not month and "month" in groups):
        return ""
    return "-".join([groups["year"], *(f"{part:02}" for part in (month, day) if part)])


@dataclass(frozen=True, slots=True)
class Period:
    """Days that belong together, both ends included."""

    first: date
    last: date

    def __contains__(self, other: object) -> bool:
        """Whether all of another period is in this one."""
        return isinstance(other, Period) and self.first <= other.first and other.last <= self.last

    def __str__(self) -> str:
        first, last = (f"{day.day} {day:%B %Y}" for day in (self.first, self.last))
        return first if first == last else f"{first} to {last}"


@dataclass(frozen=True, slots=True)
class NamedPeriod:
    """A period where a text names it."""

    period: Period
    start: int  # of its words in the text, with the preposition before them
    end: int

    def cut_out(self, text: str) -> str:
        """The text without the words of the period."""
        return (text[: self.start].rstrip() + re.sub(r"^['’]s?(?= )", "", text[self.end :])).strip()


_PERIOD = re.compile(
    r"(?<![\w.-])(?:(?P<since>since|seit)\s+)?(?P<link>(?:of|in|from|on|during|von|vom|aus|am|im|de|del|di|van|em|en)\s+)?"
    r"(?:the |der |dem )?(?:(?P<day>today|heute|(?P<past>yesterday|gestern))"
    r"|(?:(?P<past2>last|letzte[nrms]?)|this|diese[nrms]?)\s+(?P<unit>week|month|year|woche|monats?|jahr(?:es)?)"
    rf"|(?P<date>{DATE.pattern.replace('P<', 'P<d_').replace('P=', 'P=d_')})|(?P<month>{MONTH}))(?![\w-])",
    re.IGNORECASE,
)


def to_period(iso: str) -> Period | None:
    """The days of `2025`, `2025-03` or `2025-03-11`; None where there is no such day, and for anything else."""
    try:
        year, month, day = (*map(int, iso.split("-")), 0, 0)[:3]
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    return Period(first, first if day else date(year, month or 12, monthrange(year, month or 12)[1]))


def find_period(text: str, today: date) -> NamedPeriod | None:
    for found in _PERIOD.finditer(text):
        if period := _read_period(found, today):
            last = max(today, period.last) if found["since"] else period.last
            return NamedPeriod(Period(period.first, last), found.start(), found.end())
    return None


def _read_period(found: "re.Match[str]", today: date) -> Period | None:
    if found["date"]:
        plain = DATE.search(found["date"])
        return to_period(to_iso(plain)) if plain else None
    if found["month"]:
        month = MONTHS[found["month"].casefold()]  # the latest that has begun; "may" is no month without "in"
        is_named = found["link"] or found["since"]
        return to_period(f"{today.year - (month > today.month)}-{month:02}") if is_named else None
    is_past = bool(found["past"] or found["past2"])
    if found["day"]:
        return Period(day := today - timedelta(is_past), day)
    if found["unit"][0] in "wW":
        monday = today - timedelta(today.weekday() + 7 * is_past)
        return Period(monday, monday + timedelta(6))
    if found["unit"][0] in "mM":
        return to_period(f"{today.replace(day=1) - timedelta(1) if is_past else today:%Y-%m}")
    return to_period(str(today.year - is_past))
