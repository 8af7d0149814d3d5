"""What is computed of two values that a question names: a difference, a sum, the days between two dates, or to today.

Each is asked of the reader by itself, the second after the first ("and the small one?"), and both are cited. English.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date

from agent.turn.quotes import Quote
from indexes.documents.tables.cells import Number, read_numbers
from indexes.text.dates import DATE, MONTH, MONTHS, to_iso
from schemas.errors import format_count

Ask = Callable[[str, str], Quote]  # a question, and the one that it follows, or ""
Computed = tuple[str, tuple[Quote, ...]]  # the result in words, and what it rests on
_SPAN = r"how (?:long|many (?:days|weeks))"
_LEFT = r"(?:is it |are there |(?:do|have) (?:i|we) (?:have|got) |left )*"
_FORMS = (  # what is asked, the kind of answer, and how the first of two things, or the only one, is asked for
    (
        r"how (?:much )?(?:cheaper|pricier|dearer|more expensive) (?:is|are|was|were) (.+?) than (.+)",
        "less",
        "what is the price of {}",
    ),
    (r"what(?:['’]s| is| was) the difference in price between (.+?) and (.+)", "less", "what is the price of {}"),
    (r"how (?:much |many )?(?:more|less|fewer|higher|lower) (.+?) than (.+)", "less", "how much {}"),
    (r"how (?:much )?(?:longer|shorter) (.+?) than (.+)", "less", "how long {}"),
    (r"how (?:much )?(?:older|younger) (.+?) than (.+)", "less", "how old {}"),
    (r"how much (.+?) and (.+?)(?: cost| come to)? (?:together|altogether|combined|in total)", "sum", "how much {}"),
    (rf"{_SPAN} {_LEFT}(?:between|from) (.+?) (?:and|to|until|till) (.+)", "between", "when is {}"),
    (rf"{_SPAN} {_LEFT}(?:until|till|before) (.+)", "until", "when is {}"),
    (rf"{_SPAN} ago ((?:is|was|were|did|has|have) .+)", "ago", "when {}"),
)
LEAST_MARGIN = -3.0  # of the reader, from which an amount is taken: what is asked for is the value of one thing
_AMOUNT = re.compile(r"[€£$] ?\d(?:[\d.,]*\d)?|\d(?:[\d.,]*\d)?(?: ?(?:%|[A-Za-z]{1,10}\b))?")
_DAY = re.compile(rf"\b(?P<day>\d?\d)(?:st|nd|rd|th)? (?:of )?(?P<name>{MONTH})\b", re.IGNORECASE)


def compute_of_two(utterance: str, today: str, ask: Ask) -> Computed | None:
    """The result, of an utterance that asks for one and where all is read; else None. `today`: ISO 8601."""
    text = " ".join(utterance.split()).rstrip(" ?!.")
    for form, kind, opening in _FORMS:
        if found := re.fullmatch(form, text, re.IGNORECASE):
            first, *others = found.groups()
            asked = f"{opening.format(first)}?".capitalize()
            quotes = (ask(asked, ""), *(ask(f"and {other}?", asked) for other in others))
            if len({(quote.texts, quote.reading.text) for quote in quotes}) < len(quotes):
                return None
            said = _calculate(kind, quotes) if kind in ("less", "sum") else _count_days(kind, quotes, today)
            return (said, quotes) if said else None
    return None


def _calculate(kind: str, quotes: tuple[Quote, ...]) -> str:
    """The sum or difference of two amounts of one unit; "" where they are not."""
    numbers = [number for quote in quotes if (number := _read_amount(quote))]
    if len(numbers) < len(quotes) or len({number.unit for number in numbers}) > 1:
        return ""
    if kind == "less":
        numbers.sort(key=lambda number: -number.value)
    one, other = numbers
    sign, value = ("+", one.value + other.value) if kind == "sum" else ("−", one.value - other.value)
    return f"{_write(one)} {sign} {_write(other)} = {_write(replace(one, value=value))}"


def _read_amount(quote: Quote) -> Number | None:
    """The one amount that answers."""
    found = _AMOUNT.findall(quote.reading.text) if quote.reading.margin >= LEAST_MARGIN else []
    return read_numbers(found)[0] if len(found) == 1 else None


def _write(number: Number) -> str:
    figure = f"{number.value:,.{number.decimals if number.value % 1 else 0}f}"
    return f"{number.shown_unit}{figure}" if number.is_before else f"{figure} {number.shown_unit}".strip()


def _count_days(kind: str, quotes: tuple[Quote, ...], today: str) -> str:
    """The days between two dates, or between one and today; "" where a date is not read."""
    days = [day for quote in quotes if (day := _read_day(quote, today))]
    if len(days) < len(quotes):
        return ""
    shown = [f"{day.day} {day:%B %Y}" for day in days]
    if kind == "between":
        return f"{_count(abs(days[1] - days[0]).days)}: from {shown[0]} to {shown[1]}"
    left = (days[0] - date.fromisoformat(today)).days
    if left >= 0:
        return f"In {_count(left)}, on {shown[0]}" if kind == "until" else ""
    return f"{_count(-left)} ago, on {shown[0]}"


def _count(days: int) -> str:
    weeks = f" ({format_count(days // 7, 'week')} and {format_count(days % 7, 'day')})" if days > 20 else ""
    return f"{format_count(days, 'day')}{weeks}"


def _read_day(quote: Quote, today: str) -> date | None:
    """The day that answers; one without a year is of that of its document, or of today."""
    for text in (quote.reading.text, quote.lead) if quote.reading.margin >= 0 else ():
        found, short = DATE.search(text), _DAY.search(text)
        year = (quote.passage.date or today)[:4]
        plain = f"{year}-{MONTHS[short['name'].lower()]:02}-{int(short['day']):02}" if short else ""
        try:
            return date.fromisoformat((found and to_iso(found)) or plain)
        except ValueError:  # no whole date
            continue
    return None
