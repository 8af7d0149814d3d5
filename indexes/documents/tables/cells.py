"""Words, numbers, units and dates of questions, columns and cells. What could be read in two ways is neither."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from text_to_num import alpha2digit

from indexes.text.analysis import extract_stems, load_stop_words
from indexes.text.dates import MONTH, MONTHS
from indexes.words import list_tables, list_words

WORD = re.compile(r"[^\W_]+|[€£$]")
# What a cell of a column says that tells yes from no.
YES, NO = frozenset(list_words("cells.yes")), frozenset(list_words("cells.no"))
CURRENCIES = list_tables("currencies")
# What each unit is called here, with how many of the first of its group it is: "gram 1000" of "kg", "EUR" of "€".
UNIT = {word: name for name, words in CURRENCIES.items() for word in words} | {
    word: f"{group} {size}"
    for group, sizes in list_tables("sizes").items()
    for word, _, size in (pair.partition(":") for pair in sizes)
}


@lru_cache(maxsize=65536)
def stem_of(word: str) -> str:
    """The stem of one word, also of a stop word."""
    return next(iter(extract_stems(word)), word.casefold())


@lru_cache(maxsize=65536)
def split_words(text: str) -> tuple[str, ...]:
    """The stems of all words of a text, in order; of "e-mail" one."""
    plain = re.sub(r"['’]s\b", "", text.casefold()).replace("e-mail", "email")
    return tuple(stem_of(word) for word in WORD.findall(plain))


STOP_STEMS = frozenset(stem_of(word) for word in load_stop_words())
# Of no range, estimate or other text; what stands behind it, of four words at most, is its unit.
_NUMBER = re.compile(
    r"(?P<sign>[-−+])? ?(?P<before>[€£$]|\b(?:EUR|USD|GBP|CHF)\b)? ?(?P<inner>[-−])?"
    r"(?P<whole>\d{1,3}(?P<thousands>[.,'’ ])\d{3}(?:(?P=thousands)\d{3})*|\d+)(?:(?P<point>[.,])(?P<part>\d+))?"
    r"\s*(?(before)|(?P<unit>(?:(?:/h|[^\s\d;,()+~<>?/*=])+\s?){0,4}))(?<![-–])"
)


@dataclass(frozen=True, slots=True)
class Number:
    value: Decimal
    unit: str  # "EUR", "litre 1", "bottl"; empty where the cell has none
    shown_unit: str  # as it stands in the cell
    decimals: int  # digits behind the point
    is_before: bool = False  # whether the unit stands before the number


def read_numbers(cells: Sequence[str]) -> list[Number | None]:
    """The numbers of a column's cells; all None where a point could be a comma."""
    found = [_NUMBER.fullmatch(cell) for cell in cells]
    points, thousands = ({match[name] for match in found if match} - {None} for name in ("point", "thousands"))
    if len(points) > 1 or points & thousands or ("." in thousands and not points):
        return [None] * len(cells)
    return [_read_number(match) if match else None for match in found]


def _read_number(found: re.Match[str]) -> Number:
    said = found.groupdict("")
    value = Decimal(f"{re.sub('[^0-9]', '', said['whole'])}.{said['part'] or 0}")
    shown = (said["before"] or said["unit"]).strip().rstrip(".")
    unit = UNIT.get(shown.casefold()) or " ".join(split_words(shown)) or shown
    is_negative = (said["sign"] or said["inner"] or "+") != "+"
    return Number(-value if is_negative else value, unit, shown, len(said["part"]), bool(said["before"]))


_YEAR = r"(?P<year>(?:1\d|20)\d\d)"
_ORDINALS = (*list_words("ordinals", ["en"])[:4], "1st", "2nd", "3rd", "4th")
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_DATES = tuple(
    re.compile(rf"{_WEEKDAY}(?:{form})(?!\S)", re.IGNORECASE)
    for form in (
        rf"{_YEAR}[- ](?P<month>\d\d)(?:[- ](?P<day>\d\d))?",
        r"(?P<day>\d{1,2})(?P<separator>[./])(?P<month>\d{1,2})(?P=separator)(?P<year>\d{4})?",
        r"(?P<day>\d{1,2})-(?P<month>\d{1,2})-(?P<year>\d{4})",
        rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of |de )?)?(?P<name>{MONTH})\.?(?:,? (?:of |de )?{_YEAR})?",
        rf"(?P<name>{MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? {_YEAR})?",
        rf"(?:q(?P<number>[1-4])|(?P<ordinal>{'|'.join(_ORDINALS)}) quarter)(?: (?:of )?{_YEAR})?",
        _YEAR,
    )
)
_DAY = re.compile(r"(?P<day>\d{1,2})(?:st|nd|rd|th)(?!\S)")
_HOUR = re.compile(r"\b(\d{1,2})(?::(\d\d))? ?([ap])\.?m\b", re.IGNORECASE)
_FIGURE = re.compile(
    r"(?<![\w.,:])(?:\d{1,3}(?:[ ,.'’]\d{3})+(?!\d)|\d+)(?::\d\d)*(?:[.,]\d+)?(?!st|nd|rd|th|:?\d)(?=[^\W\d]{0,3}\b)"
)
_OTHER_WORDS = frozenset(("may", "mar", "sep", "mayo", "mars"))  # months only with a capital
_TIME_AFTER = re.compile(r"[T ,]+\d{1,2}:\d\d(?::\d\d)?(?:Z| ?(?:Uhr|am|pm))?$", re.IGNORECASE)


class Date(NamedTuple):
    """A date in a cell, or a period that is asked for; 0 where a part is not said."""

    year: int
    quarter: int = 0
    month: int = 0
    day: int = 0

    def holds(self, date: "Date") -> bool:
        """Whether a date surely lies in this period."""
        return all(asked in (0, said) for asked, said in zip(self, date, strict=True))


def read_dates(cells: Sequence[str]) -> list[Date | None]:
    """The dates of a column's cells; None for "3/4/2025" where no other cell tells which of the two is the month."""
    pairs = [match for cell in cells if (match := re.match(r"(\d{1,2})/(\d{1,2})/", cell))]
    first, second = (any(int(match[part]) > 12 for match in pairs) for part in (1, 2))
    found = [_match_longest(_TIME_AFTER.sub("", cell), whole=True) for cell in cells]
    return [
        _read_date(match, is_month_first=second) if match and ("/" not in match[0] or first != second) else None
        for match in found
    ]


def find_periods(text: str) -> list[str]:
    """The dates and periods in a text, in order: "March 2025", "2024", "9th"; "may" alone only where it is the one."""
    plain, found, at = re.sub(r"[?!,.;:)]+(?=\s|$)", "", text), list[str](), 0
    for start in re.finditer(r"(?<!\S)\S", plain):
        rest = plain[start.start() :]
        if start.start() >= at and (match := _match_longest(rest) or _DAY.match(rest)):
            at = start.start() + match.end()
            found.append(match[0])
    sure = [period for period in found if period not in _OTHER_WORDS]
    return sure or found


def read_period(text: str) -> Date | None:
    """What one of `find_periods` stands for."""
    if day := _DAY.fullmatch(text):
        return Date(0, day=int(day["day"]))
    return read_dates([text])[0]


def find_figures(text: str, language: str) -> list[str]:
    """The numbers in a text, in order, also those in words: "two hundred" is "200", "5 pm" "17:00"; "one" is none."""
    plain = text
    with suppress(ValueError):  # no language that it knows
        plain = alpha2digit(text, language, threshold=0)
    plain = _HOUR.sub(lambda found: f"{int(found[1]) % 12 + 12 * (found[3].lower() == 'p')}:{found[2] or '00'}", plain)
    found = [match[0] for match in _FIGURE.finditer(plain)]
    return [figure for figure in found if figure != "1" or re.search(r"\b1\b", text)]


def _match_longest(text: str, *, whole: bool = False) -> re.Match[str] | None:
    found = [match for form in _DATES if (match := form.fullmatch(text) if whole else form.match(text))]
    return max(found, key=lambda match: match.end(), default=None)


def _read_date(found: re.Match[str], *, is_month_first: bool = False) -> Date | None:
    said = {name: text for name, text in found.groupdict().items() if text}
    month = MONTHS[said["name"].lower()] if "name" in said else int(said.get("month", 0))
    year, day = int(said.get("year", 0)), int(said.get("day", 0))
    if is_month_first and "/" in found[0]:
        month, day = day, month
    ordinal = _ORDINALS.index(said["ordinal"].lower()) % 4 + 1 if "ordinal" in said else (month + 2) // 3
    return Date(year, int(said.get("number", ordinal)), month, day) if month <= 12 and day <= 31 else None
