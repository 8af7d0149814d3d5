"""Words, numbers and dates of questions, columns and cells. Strict: what could be read in two ways is neither."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from agent.turn.tables.amounts import CURRENCY_OF, MONTH, MONTH_OF, UNIT, read_date
from indexes.text.analysis import extract_stems
from indexes.words import list_tables, list_words

WORD = re.compile(r"[^\W_]+|[€£$]")
# What a cell of a column says that tells yes from no.
YES, NO = frozenset(list_words("cells.yes")), frozenset(list_words("cells.no"))


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
    rf"(?P<sign>[-−+])? ?(?P<before>{_CURRENCY})? ?(?P<inner>[-−])?(?P<number>\d[\d.,]*\d|\d)\s*(?P<unit>[^\d;,()]*)"
)
_DECIMAL = re.compile(
    r"(?P<whole>\d{1,3}(?P<thousands>[.,])\d{3}(?:(?P=thousands)\d{3})*|\d+)(?:(?P<point>[.,])(?P<part>\d+))?"
)
_NUMERIC_DATE = re.compile(r"(?P<first>\d{1,2})(?P<separator>[./])(?P<second>\d{1,2})(?P=separator)(?P<year>\d{4})?")
_DAY_OF_MONTH = re.compile(rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? )?(?P<month>{MONTH})", re.IGNORECASE)
_AMERICAN = re.compile(
    rf"(?P<month>{MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?", re.IGNORECASE
)
_ISO_MONTH = re.compile(r"(\d{4})-(\d\d)")
_TIME_AFTER = re.compile(r"[T ,]+\d{1,2}:\d\d(?::\d\d)?(?:Z| ?(?:Uhr|am|pm))?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a cell."""

    value: Decimal
    unit: str  # "EUR", "litre", "bottl"; empty where the cell has none
    shown_unit: str  # as it stands in the cell
    decimals: int  # digits behind the point
    is_before: bool = False  # whether the unit stands before the number


@dataclass(frozen=True, slots=True)
class Date:
    """A date in a cell; 0 where a part is not said."""

    year: int
    month: int = 0
    day: int = 0

    @property
    def in_order(self) -> tuple[int, int, int]:
        """What dates are sorted by."""
        return self.year, self.month, self.day

    @property
    def quarter(self) -> int:
        """From 1 to 4; 0 without a month."""
        return (self.month + 2) // 3


def read_numbers(cells: Sequence[str]) -> list[Number] | None:
    """The numbers of a column; None where a cell holds none, or where a point could be a comma."""
    found = [read_number(cell) for cell in cells]
    numbers = [number for number in found if number]
    points = {match["point"] for cell in cells if (match := _find_decimal(cell)) and match["point"]}
    thousands = {match["thousands"] for cell in cells if (match := _find_decimal(cell)) and match["thousands"]}
    if len(numbers) < len(cells) or len(points) > 1 or points & thousands:
        return None
    return None if "." in thousands and not points else numbers


def read_number(cell: str) -> Number | None:
    """The one number of a cell with its unit; None of a range, an estimate, a date and any other text."""
    found = _NUMBER.fullmatch(cell.strip())
    written = _DECIMAL.fullmatch(found["number"]) if found else None
    if found is None or written is None or len(found["unit"].split()) > MAX_UNIT_WORDS:
        return None
    shown = (found["before"] or found["unit"]).strip().rstrip(".")
    if (found["before"] and found["unit"].strip()) or re.search(r"[+~<>?/*=]|[-–]$", shown.replace("/h", "")):
        return None
    unit, size = read_unit(shown)
    whole = re.sub(r"[.,]", "", written["whole"])
    value = Decimal(f"{whole}.{written['part'] or 0}") * (-1 if (found["sign"] or found["inner"] or "+") != "+" else 1)
    return Number(value, f"{unit} {size}".strip(), shown, len(written["part"] or ""), bool(found["before"]))


def _find_decimal(cell: str) -> re.Match[str] | None:
    found = _NUMBER.fullmatch(cell.strip())
    return _DECIMAL.fullmatch(found["number"]) if found else None


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
    numeric = [match for cell in cells if (match := _NUMERIC_DATE.match(cell)) and match["separator"] == "/"]
    first, second = (any(int(match[part]) > 12 for match in numeric) for part in ("first", "second"))
    return None if first == second else second


def _read_date(cell: str, american: bool | None) -> Date | None:
    if found := _NUMERIC_DATE.fullmatch(cell):
        return _read_numeric(found, american)
    if found := _ISO_MONTH.fullmatch(cell):
        return _check(Date(int(found[1]), int(found[2])))
    if found := _AMERICAN.fullmatch(cell) or _DAY_OF_MONTH.fullmatch(cell):
        groups = found.groupdict()
        return _check(
            Date(int(groups.get("year") or 0), MONTH_OF[groups["month"][:3].lower()], int(groups.get("day") or 0))
        )
    found_date = read_date(cell)
    return _check(Date(*found_date)) if found_date else None


def _read_numeric(found: re.Match[str], american: bool | None) -> Date | None:
    first, second, year = int(found["first"]), int(found["second"]), int(found["year"] or 0)
    if found["separator"] == ".":
        return _check(Date(year, second, first))
    if american is None:
        return None
    return _check(Date(year, *((first, second) if american else (second, first))))


def _check(date: Date) -> Date | None:
    """A date that there may be."""
    return date if date.month <= 12 and date.day <= 31 and (not date.year or 1000 <= date.year <= 2200) else None


_QUARTERS = (*list_words("ordinals")[:4], "1st", "2nd", "3rd", "4th")
_YEAR = re.compile(r"(?:19|20)\d\d")


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
    return _read_quarter(words) or _read_day(words) or _read_month(words) or _read_year(words)


def _read_year(words: Sequence[str]) -> tuple[Period, int] | None:
    if not words or not _YEAR.fullmatch(words[0]):
        return None
    numbers = [int(word) for word in words[1:3] if re.fullmatch(r"\d\d", word)]
    if len(numbers) == 2 and 1 <= numbers[0] <= 12:
        return Period(int(words[0]), month=numbers[0], day=numbers[1]), 3
    return Period(int(words[0])), 1


def _read_month(words: Sequence[str]) -> tuple[Period, int] | None:
    """ "May" only with its capital."""
    month = MONTH_OF.get(words[0].casefold()) if words and words[0] not in ("may", "mar", "sep") else None
    if month is None:
        return None
    year, count = _read_year_after(words, 1)
    return Period(year, month=month), count


def _read_day(words: Sequence[str]) -> tuple[Period, int] | None:
    found = re.fullmatch(r"([0-3]?\d)(?:st|nd|rd|th)?", words[0]) if words else None
    start = 2 if words[1:2] == ["of"] else 1
    after = _read_month(words[start:]) if found else None
    if found is None or after is None:
        return None
    period, count = after
    return Period(period.year, month=period.month, day=int(found[1])), start + count


def _read_quarter(words: Sequence[str]) -> tuple[Period, int] | None:
    lower = [word.casefold() for word in words[:2]]
    if lower and re.fullmatch(r"q[1-4]", lower[0]):
        quarter, end = int(lower[0][1]), 1
    elif lower[1:] == ["quarter"] and lower[0] in _QUARTERS:
        quarter, end = _QUARTERS.index(lower[0]) % 4 + 1, 2
    else:
        return None
    year, count = _read_year_after(words, end)
    return Period(year, quarter), count


def _read_year_after(words: Sequence[str], end: int) -> tuple[int, int]:
    """The year behind so many words, with how many they are then; 0 where there is none."""
    start = end + (words[end : end + 1] == ["of"])
    if start < len(words) and _YEAR.fullmatch(words[start]):
        return int(words[start]), start + 1
    return 0, end
