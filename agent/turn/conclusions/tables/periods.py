"""The period that some words of a question name: "June", "12 March 2025", "the first quarter of 2025", "2024"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.turn.conclusions.amounts import MONTH_OF
from agent.turn.conclusions.tables.cells import Date
from indexes.words import list_words

_MONTH_OF = MONTH_OF | {"sept": 9}
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
    month = _MONTH_OF.get(words[0].casefold()) if words and words[0] not in ("may", "mar", "sep") else None
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
