"""Dates as people write them in the names and titles of documents, with the months of seven languages."""

import re

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
