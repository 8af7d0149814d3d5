"""Words, numbers, units and dates of questions, columns and cells. What could be read in two ways is neither."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from indexes.text.analysis import extract_stems
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


# Words of which one stands for another: what was spent is in a table of expenses.
GROUP_OF = {stem_of(word): group for group, words in list_tables("same_meaning").items() for word in words}
UNIT_OF = {stem_of(word): unit for word, unit in UNIT.items()}
# What the name of a column says of it: that it holds money, dates, or numbers that are not added.
ROLES = {name: frozenset(split_words(" ".join(words))) for name, words in list_tables("columns").items()}
ROLES["quantity"] = frozenset(stem for stem, group in GROUP_OF.items() if group == "quantity")
UNIT_WORDS = frozenset(stem_of(word) for words in CURRENCIES.values() for word in words)
ROLES["money"] |= UNIT_WORDS
ROLES["generic"] |= UNIT_WORDS


def drop_generic(stems: tuple[str, ...]) -> tuple[str, ...]:
    """What says which column is meant: the phone of "phone number"."""
    return tuple(stem for stem in stems if stem not in ROLES["generic"]) or stems


def name_the_same(one: str, other: str) -> bool:
    """Whether a stem may name a column with another in its name; what was spent is not the column of who paid."""
    return f"{one}er" == other or one == other or (GROUP_OF.get(one) != "spending" and mean_the_same(one, other))


def mean_the_same(one: str, other: str) -> bool:
    """Whether two stems are the same, of one group, or of one unit."""
    return one == other or any(one in group and group[one] == group.get(other) for group in (GROUP_OF, UNIT_OF))


# Of no range, estimate or other text; what stands behind it, of four words at most, is its unit.
_NUMBER = re.compile(
    r"(?P<sign>[-−+])? ?(?P<before>[€£$]|\b(?:EUR|USD|GBP|CHF)\b)? ?(?P<inner>[-−])?"
    r"(?P<whole>\d{1,3}(?P<thousands>[.,'’ ])\d{3}(?:(?P=thousands)\d{3})*|\d+)(?:(?P<point>[.,])(?P<part>\d+))?"
    r"\s*(?(before)|(?P<unit>(?:(?:/h|[^\s\d;,()+~<>?/*=])+\s?){0,4}))(?<![-–])"
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a cell."""

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
        rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?)?(?P<name>{MONTH})\.?(?:,? (?:of )?{_YEAR})?",
        rf"(?P<name>{MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? {_YEAR})?",
        rf"(?:q(?P<number>[1-4])|(?P<ordinal>{'|'.join(_ORDINALS)}) quarter)(?: (?:of )?{_YEAR})?",
        _YEAR,
    )
)
_TIME_AFTER = re.compile(r"[T ,]+\d{1,2}:\d\d(?::\d\d)?(?:Z| ?(?:Uhr|am|pm))?$", re.IGNORECASE)
_OTHER_WORDS = frozenset(("may", "mar", "sep", "mayo", "mars"))  # months only with a capital


class Date(NamedTuple):
    """A date in a cell, or a period that is asked for; 0 where a part is not said."""

    year: int
    quarter: int = 0
    month: int = 0
    day: int = 0

    def holds(self, date: "Date") -> bool:
        """Whether a date surely lies in this period."""
        return all(asked in (0, said) for asked, said in zip(self, date, strict=True))

    def is_decided_by(self, date: "Date") -> bool:
        """Whether a date says all that is needed to tell whether it lies in this period."""
        return all(said or not asked for asked, said in zip(self, date, strict=True))


def read_dates(cells: Sequence[str]) -> list[Date | None]:
    """The dates of a column's cells; None for "3/4/2025" where no other cell tells which of the two is the month."""
    pairs = [match for cell in cells if (match := re.match(r"(\d{1,2})/(\d{1,2})/", cell))]
    first, second = (any(int(match[part]) > 12 for match in pairs) for part in (1, 2))
    found = [_match_longest(_TIME_AFTER.sub("", cell), whole=True) for cell in cells]
    return [
        _read_date(match, is_month_first=second) if match and ("/" not in match[0] or first != second) else None
        for match in found
    ]


def read_period(words: Sequence[str]) -> tuple[Date, int] | None:
    """The period that words begin with, and of how many it is; None where they begin with none."""
    found = _match_longest(" ".join(words))
    period = _read_date(found) if found and found.groupdict().get("name") not in _OTHER_WORDS else None
    return (period, len(found[0].split())) if found and period else None


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
