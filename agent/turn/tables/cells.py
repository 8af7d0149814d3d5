"""Words, numbers, units and dates of questions, columns and cells. What could be read in two ways is neither."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from indexes.text.analysis import extract_stems
from indexes.text.dates import MONTH, MONTHS, YEAR
from indexes.words import list_tables, list_words

WORD = re.compile(r"[^\W_]+|[€£$]")
# What a cell of a column says that tells yes from no.
YES, NO = frozenset(list_words("cells.yes")), frozenset(list_words("cells.no"))
CURRENCY_OF = {word: name for name, words in list_tables("currencies").items() for word in words}
# How many of the first unit of its group each is.
UNIT = {
    word: (group, Decimal(size.partition("/")[0]) / Decimal(size.partition("/")[2] or 1))
    for group, sizes in list_tables("sizes").items()
    for word, size in (pair.split(":") for pair in sizes)
}


@lru_cache(maxsize=65536)
def stem_of(word: str) -> str:
    """The stem of one word, also of a stop word."""
    return next(iter(extract_stems(word)), word.casefold())


@lru_cache(maxsize=65536)
def split_words(text: str) -> tuple[str, ...]:
    """The stems of all words of a text, in order; of "e-mail" one."""
    plain = re.sub(r"['’]s\b", "", text).replace("e-mail", "email").replace("E-Mail", "email")
    return tuple(stem_of(word) for word in WORD.findall(plain.casefold()))


# Words of which one stands for another: what was spent is in a table of expenses.
GROUP_OF = {stem_of(word): group for group, words in list_tables("same_meaning").items() for word in words}
UNIT_OF = {stem_of(word): unit for word, unit in UNIT.items()}
QUANTITIES = frozenset(stem for stem, group in GROUP_OF.items() if group == "quantity")
CURRENCIES = frozenset(list_words("table_words.currencies"))
UNIT_WORDS = frozenset(map(stem_of, CURRENCIES))


def name_the_same(one: str, other: str) -> bool:
    """Whether a stem may name a column with another in its name; what was spent is not the column of who paid."""
    return one == other or (GROUP_OF.get(one) != "spending" and mean_the_same(one, other))


def mean_the_same(one: str, other: str) -> bool:
    """Whether two stems are the same, of one group, or of one unit."""
    groups = (GROUP_OF, UNIT_OF)
    return one == other or any(one in group and group[one] == group.get(other) for group in groups)


MAX_UNIT_WORDS = 4
_CURRENCY = r"[€£$]|\b(?:EUR|USD|GBP|CHF)\b"
_NUMBER = re.compile(
    rf"(?P<sign>[-−+])? ?(?P<before>{_CURRENCY})? ?(?P<inner>[-−])?"
    r"(?P<whole>\d{1,3}(?P<thousands>[.,])\d{3}(?:(?P=thousands)\d{3})*|\d+)(?:(?P<point>[.,])(?P<part>\d+))?"
    r"\s*(?P<unit>[^\d;,()]*)"
)
_DATES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?",
        r"(?P<day>\d{1,2})(?P<separator>[./])(?P<month>\d{1,2})(?P=separator)(?P<year>\d{4})?",
        rf"(?:in\s+)?(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? )?(?P<name>{MONTH})\.?(?:,? (?P<year>\d{{4}}))?",
        rf"(?P<name>{MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?",
        r"(?:in\s+)?(?P<year>\d{4})",
    )
)
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/")
_TIME_AFTER = re.compile(r"[T ,]+\d{1,2}:\d\d(?::\d\d)?(?:Z| ?(?:Uhr|am|pm))?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a cell."""

    value: Decimal
    unit: str  # "EUR", "litre", "bottl"; empty where the cell has none
    shown_unit: str  # as it stands in the cell
    decimals: int  # digits behind the point
    is_before: bool = False  # whether the unit stands before the number


@dataclass(frozen=True, slots=True, order=True)
class Date:
    """A date in a cell; 0 where a part is not said."""

    year: int
    month: int = 0
    day: int = 0

    @property
    def quarter(self) -> int:
        """From 1 to 4; 0 without a month."""
        return (self.month + 2) // 3


def read_numbers(cells: Sequence[str]) -> list[Number] | None:
    """The numbers of a column; None where a cell holds none, or where a point could be a comma."""
    numbers = [number for cell in cells if (number := read_number(cell))]
    found = [match for cell in cells if (match := _NUMBER.fullmatch(cell.strip()))]
    points, thousands = ({match[name] for match in found} - {None} for name in ("point", "thousands"))
    if len(numbers) < len(cells) or len(points) > 1 or points & thousands:
        return None
    return None if "." in thousands and not points else numbers


def read_number(cell: str) -> Number | None:
    """The one number of a cell with its unit; None of a range, an estimate, a date and any other text."""
    found = _NUMBER.fullmatch(cell.strip())
    if found is None or len(found["unit"].split()) > MAX_UNIT_WORDS:
        return None
    shown = (found["before"] or found["unit"]).strip().rstrip(".")
    if (found["before"] and found["unit"].strip()) or re.search(r"[+~<>?/*=]|[-–]$", shown.replace("/h", "")):
        return None
    unit, size = read_unit(shown)
    whole = re.sub(r"[.,]", "", found["whole"])
    value = Decimal(f"{whole}.{found['part'] or 0}") * (-1 if (found["sign"] or found["inner"] or "+") != "+" else 1)
    return Number(value, f"{unit} {size}".strip(), shown, len(found["part"] or ""), bool(found["before"]))


def read_unit(text: str) -> tuple[str, str]:
    """What a unit is called here, and its size where it is one of several of a measure: ("gram", "1000") of "kg"."""
    plain = text.casefold().strip(" .")
    if plain in CURRENCY_OF:
        return CURRENCY_OF[plain], ""
    if plain in UNIT:
        group, size = UNIT[plain]
        return group, str(size.normalize())
    return " ".join(split_words(text)) or plain, ""


def read_dates(cells: Sequence[str]) -> list[Date] | None:
    """The dates of a column; None where a cell holds none, or where a day could be a month."""
    american = _is_month_first(cells)
    found = [_read_date(_TIME_AFTER.sub("", cell.strip()), american) for cell in cells]
    dates = [date for date in found if date]
    return dates if len(dates) == len(cells) else None


def _is_month_first(cells: Sequence[str]) -> bool | None:
    """Whether "3/4/2025" is in March; None where no cell tells."""
    pairs = [match for cell in cells if (match := _SLASHES.match(cell))]
    first, second = (any(int(match[part]) > 12 for match in pairs) for part in (1, 2))
    return None if first == second else second


def _read_date(cell: str, american: bool | None) -> Date | None:
    found = next(filter(None, (form.fullmatch(cell) for form in _DATES)), None)
    if found is None or ("/" in cell and american is None):
        return None
    said = found.groupdict(default="0")
    month = MONTHS[said["name"].lower()] if "name" in said else int(said.get("month", 0))
    year, day = int(said["year"]), int(said.get("day", 0))
    if "/" in cell and american:
        month, day = day, month
    return Date(year, month, day) if month <= 12 and day <= 31 and (not year or 1000 <= year <= 2200) else None


_QUARTERS = (*list_words("ordinals")[:4], "1st", "2nd", "3rd", "4th", "q1", "q2", "q3", "q4")
_PERIOD = re.compile(
    rf"(?:(?:(?P<quarter>q[1-4]|(?:{'|'.join(_QUARTERS[:8])}) quarter)"
    rf"|(?:(?P<day>[0-3]?\d)(?:st|nd|rd|th)? (?:of )?)?(?P<name>{MONTH}))(?: (?:of )?(?P<year>{YEAR}))?"
    rf"|(?P<year_alone>{YEAR})(?: (?P<month>0[1-9]|1[0-2]) (?P<day_after>\d\d))?)(?!\S)",
    re.IGNORECASE,
)
_OTHER_WORDS = frozenset(("may", "mar", "sep", "mayo", "mars"))  # months only with a capital


@dataclass(frozen=True, slots=True)
class Period:
    """A time that is asked for; 0 where a part is not said."""

    year: int = 0
    quarter: int = 0
    month: int = 0
    day: int = 0

    def holds(self, date: Date) -> bool:
        """Whether a date surely lies in it."""
        pairs = ((self.year, date.year), (self.quarter, date.quarter), (self.month, date.month), (self.day, date.day))
        return all(asked in (0, said) for asked, said in pairs)

    def is_decided_by(self, date: Date) -> bool:
        """Whether a date says all that is needed to tell whether it lies in it."""
        asked = (self.year, self.quarter or self.month, self.day)
        return all(not part or bool(said) for part, said in zip(asked, (date.year, date.month, date.day), strict=True))


def read_period(words: Sequence[str]) -> tuple[Period, int] | None:
    """The period that words begin with, and of how many it is; None where they begin with none."""
    found = _PERIOD.match(" ".join(words))
    if found is None or found["name"] in _OTHER_WORDS:
        return None
    quarter = _QUARTERS.index(found["quarter"].casefold().split()[0]) % 4 + 1 if found["quarter"] else 0
    month = MONTHS[found["name"].lower()] if found["name"] else int(found["month"] or 0)
    year, day = found["year"] or found["year_alone"] or 0, found["day"] or found["day_after"] or 0
    return Period(int(year), quarter, month, int(day)), len(found[0].split())
