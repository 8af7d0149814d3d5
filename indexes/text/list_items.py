"""Where the items of a list begin in running text: "1. Warm up. 2. Stretch." or "• first • second"."""

import re
from collections.abc import Sequence

from indexes.text.analysis import word_set
from indexes.text.sentence_ends import CLOSING, OPENING, is_ordinal

_NUMBER = re.compile(r"[#(]?(\d{1,2})[.)]")
_BULLETS = word_set("• ▪ ● ‣ ◦ ✓ ✔ ➢")
_NOT_BEFORE_ITEMS = word_set(
    "table figure fig chapter section type day week phase part level no version page volume act season grade step "
    "tabelle kapitel seite zimmer band teil abschnitt in of at to from by than and or until the a an is are was were "
    "about over under only nearly some und oder bis von am der die das den dem im vom zum zur"
)


def find_item_starts(words: Sequence[str]) -> list[int]:
    """The numbers of the words that are an item's number or bullet.

    A number counts after the end of a sentence, and elsewhere only where its neighbour in the list stands beside it.
    """
    matched = ((place, _match_number(words, place)) for place in range(len(words)))
    numbers = [(place, int(match[1])) for place, match in matched if match]
    bullets = [place for place, word in enumerate(words[:-1]) if word in _BULLETS]
    found = [place for at, (place, _) in enumerate(numbers) if _is_item(words, numbers, at)]
    return sorted(found + (bullets if len(bullets) > 1 or bullets == [0] else []))


def _match_number(words: Sequence[str], place: int) -> re.Match[str] | None:
    found = _NUMBER.fullmatch(words[place])
    if not found or place + 1 == len(words):
        return None
    following = words[place + 1].lstrip(OPENING)
    before = words[place - 1] if place else ""
    return found if following[:1].isupper() and not is_ordinal(before, following) else None


def _is_item(words: Sequence[str], numbers: Sequence[tuple[int, int]], at: int) -> bool:
    place, value = numbers[at]
    before = words[place - 1].rstrip(CLOSING) if place else "."
    if before[-1:] in (".", "!", "?", ":", ";", "…", "") and not _NUMBER.fullmatch(words[place - 1] if place else ""):
        return True
    beside = [number for _, number in (*numbers[max(0, at - 1) : at], *numbers[at + 1 : at + 2])]
    return before.lower() not in _NOT_BEFORE_ITEMS and any(abs(value - other) == 1 for other in beside)
