"""Splitting a passage into units: sentences, list items, table rows, headings and boilerplate.

Its lines are read as blocks first: table rows, list items, headings of one line, and running text. The readers of
documents keep lines (`indexes/documents/chunking.py`): an item ends with ";" or ".", a row is `name: value; name:
value.`, and a heading that nothing stands below ends with a full stop. Text of the web is one line.

Nothing but white space is lost: the texts of the units, in order, are the words of the passage. Headings and what else
a web page has glued to the front of a sentence are split off where that is sure (`headings.py`). A unit that says
something only together with the one before ("It was not agreed in this contract.") is known to point back.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from indexes.text.headings import (
    WINDOW,
    begins_sentence,
    count_glued_words,
    is_boilerplate,
    is_heading,
    may_begin_with_heading,
)
from indexes.text.sentence_ends import CLOSING, OPENING, find_sentence_starts, is_ordinal
from indexes.words import compile_any, load_words
from schemas.records import Passage, Unit, UnitKind

MIN_WRAPPED_CHARACTERS = 45  # a shorter line, though another follows, was meant to end where it does
MAX_NAME_WORDS = 4  # of a column's name
MAX_LABEL_WORDS = 6  # of a heading before the text that it stands above: "Keeping: The bread ..."
_BULLET = re.compile(r"(?:[-*•–·‣▪]|\[[ xX]\]|\(?\d{1,2}[.)])\s")
_NAME = re.compile(r"(?:[^:;.!?]|\.(?=\w)){1,60}: \S")
_KEY = re.compile(r"[a-z_][\w.\[\]]{0,40}: \S")
_LABEL = re.compile(r"([^:;.!?]{1,60}:) (\S.*)")
_BINDING = re.compile(
    r"warn|note|caution|danger|attention|important|except|only|not\b|never|tip\b|achtung|hinweis|vorsicht|ausnahm|wichtig"
    r"|nicht|nur\b|limit|condition|bedingung|unless|if\b|when\b|wenn\b",
    re.IGNORECASE,
)  # a label that is part of what it stands before


@dataclass(frozen=True, slots=True)
class Piece:
    """A block of a passage's text, or what a block of running text, of the kind "sentence", is split into."""

    text: str
    kind: UnitKind


def read_text_blocks(text: str, title: str = "") -> Iterator[Piece]:
    """The blocks of a passage's text, in order, with all its words."""
    lines = list(_join_wrapped_lines(text))
    after_item = False
    for number, line in enumerate(lines):
        if number == 0 and len(lines) > 1 and _is_heading_line(line, title):
            yield Piece(line, "heading")
            continue
        is_row = _is_row(line)
        is_clause = ". " not in line and len(line.split()) <= 25 and not line.endswith(":")  # the last item of a list?
        is_item = not is_row and (line.endswith(";") or bool(_BULLET.match(line)) or (after_item and is_clause))
        label, rest = ("", line) if is_row else _cut_label(line, title, is_item=is_item)
        if label:
            yield Piece(label, "heading")
        yield Piece(rest, "row" if is_row else "item" if is_item else "sentence")
        after_item = is_item and line.endswith(";")


def _join_wrapped_lines(text: str) -> Iterator[str]:
    """The lines with white space folded; one that does not end where it ends is joined with the next."""
    held: list[str] = []
    for line in [*text.split("\n"), ""]:
        folded = " ".join(line.split())
        if held and (not folded or _ends_line(held[-1], folded)):
            yield " ".join(held)
            held = []
        if folded:
            held.append(folded)


def _ends_line(line: str, following: str) -> bool:
    if line.rstrip(CLOSING)[-1:] in (".", "!", "?", ":", ";", "…") or _BULLET.match(following):
        return True
    return len(line) < MIN_WRAPPED_CHARACTERS and not following[0].islower()


def _is_row(line: str) -> bool:
    """Whether a line is `name: value; name: value.`, or `key: value.` as in front matter."""
    parts = line.split("; ")
    names = [part.split(":")[0] for part in parts if _NAME.match(part)]
    if len(names) < 2 or not _NAME.match(line):
        return bool(_KEY.match(line)) and len(line.split()) > 1
    return all(len(name.split()) <= MAX_NAME_WORDS for name in names) and len(names) * 2 >= len(parts)


def _is_heading_line(line: str, title: str) -> bool:
    bare = line.rstrip(".").casefold()
    return line.endswith(".") and ". " not in line and len(bare) > 3 and bare in title.casefold()


def _cut_label(line: str, title: str, *, is_item: bool) -> tuple[str, str]:
    """The heading that stands in a line before its text, as `chunk_blocks` joins them, and the text."""
    found = _LABEL.fullmatch(line)
    if not found or len(found[1].split()) > MAX_LABEL_WORDS or _BINDING.search(found[1]) or _BULLET.match(line):
        return "", line
    named = found[1][:-1].casefold() in title.casefold().split(": ")
    if named or (is_item and line.endswith(";")) or begins_sentence(found[2]):
        return found[1], found[2]
    return "", line


MAX_LIMITING_WORDS = 14  # of a sentence that points back and negates; a longer one says something of its own
_QUOTES = "[\"'“‘„(\\[]*"
_POINTS_BACK = compile_any("points_back_in_text.points_back", front=_QUOTES)
_CUT_OFF = compile_any("points_back_in_text.cut_off", ignore_case=False)
_LIMITS = compile_any("points_back_in_text.limits", front=_QUOTES)
_NEGATES = compile_any("points_back_in_text.negates")
_DEMONSTRATIVE = re.compile(r"(?:this|these|that|those|dies\w*)\s(\w{3,})", re.IGNORECASE)


def points_back(text: str, *, is_item: bool = False) -> bool:
    """Whether a sentence or list item begins with, or hangs on, something that stands before it."""
    return bool(_POINTS_BACK.match(text) or (not is_item and _CUT_OFF.match(text)))


def names_its_subject(text: str, headings: Sequence[str]) -> bool:
    """Whether a sentence begins with a demonstrative and a noun that the headings above it have: "These pancakes"."""
    found = _DEMONSTRATIVE.match(text)
    return found is not None and found[1].lower().rstrip("s") in " ".join(headings).lower()


def limits_what_stands_before(text: str) -> bool:
    """Whether a sentence is the negation, condition or exception of the one before it."""
    if len(text.split()) > MAX_LIMITING_WORDS:
        return bool(re.match(r"(?:except|exception|exceptions|ausnahme|ausnahmen)\b", text, re.IGNORECASE))
    return bool(_LIMITS.match(text)) or (bool(_NEGATES.search(text)) and points_back(text))


_NUMBER = re.compile(r"[#(]?(\d{1,2})[.)]")
_BULLETS = frozenset("•▪●‣◦✓✔➢")
_NOT_BEFORE_ITEMS = load_words("headings.not_before_items")


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


_UNSPACED_STOP = re.compile(r"[。！？](?=\w)")  # Chinese and Japanese have no space between sentences
MAX_HEADINGS = 4  # that are kept where one follows another directly, as in a menu


def split_units(passage: Passage) -> tuple[Unit, ...]:
    """The units of a passage, in order. Takes time in proportion to the length of its text."""
    return _split(passage.text, passage.title)


def find_units_to_quote(units: Sequence[Unit], place: int) -> tuple[Unit, ...]:
    """A unit with all that must be shown with it, in order; empty where it cannot be quoted.

    It cannot where it is no statement, or where it or what it needs points back to something that is not there.
    """
    wanted, waiting = set[int](), [place]
    if units[place].text.endswith(":"):
        waiting += [unit.place for unit in units[place + 1 : place + 2] if unit.is_statement]
    while waiting:
        unit = units[waiting.pop()]
        if not unit.is_statement or (unit.points_back and not any(need < unit.place for need in unit.needs)):
            return ()
        wanted.add(unit.place)
        waiting += [need for need in unit.needs if need not in wanted]
    if len(wanted) == 1 and units[place].text.endswith(":"):
        return ()
    return tuple(units[number] for number in sorted(wanted))


@lru_cache(maxsize=4096)  # a turn often has the passages of the turn before
def _split(text: str, title: str) -> tuple[Unit, ...]:
    pieces = [piece for block in read_text_blocks(text, title) for piece in _split_block(block)]
    pieces = _tell_headings_from_items(pieces)
    return _connect(list(_place_under_headings(pieces, title)))


def _split_block(block: Piece) -> Iterator[Piece]:
    """A row, heading or item as it is; of running text its sentences, list items and what is glued to their fronts."""
    words = _UNSPACED_STOP.sub(r"\g<0> ", block.text).split()
    if block.kind in ("row", "heading"):
        yield Piece(" ".join(words), block.kind)
        return
    items = find_item_starts(words)
    starts = sorted((set(find_sentence_starts(words)) - {item + 1 for item in items}) | set(items) | {0})
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        is_item = start in items or (block.kind == "item" and start == 0)
        yield from _split_front(words[start:end], is_item=is_item)


def _split_front(words: Sequence[str], *, is_item: bool) -> Iterator[Piece]:
    start = 0
    while not is_boilerplate(" ".join(words[start : start + WINDOW])):
        count = count_glued_words(words[start : start + WINDOW])
        if not 0 < count < len(words) - start:
            break
        glued = " ".join(words[start : start + count])
        yield Piece(glued, "boilerplate" if is_boilerplate(glued) else "heading")
        start, is_item = start + count, False
    text = " ".join(words[start:])
    kind: UnitKind = "boilerplate" if is_boilerplate(text) else "item" if is_item else "sentence"
    yield Piece(text, "heading" if kind == "sentence" and is_heading(text) else kind)


def _tell_headings_from_items(pieces: Sequence[Piece]) -> list[Piece]:
    """A numbered title with sentences below is a heading; what a passage has alone is a sentence."""
    told = list(pieces)
    for number, piece in enumerate(pieces):
        beside = {other.kind for other in pieces[max(0, number - 1) : number + 2 : 2]}
        if piece.kind == "item" and is_heading(piece.text) and "item" not in beside:
            told[number] = replace(piece, kind="heading")
    if len(told) == 1 and told[0].kind == "heading":
        told[0] = replace(told[0], kind="sentence")
    return told


def _place_under_headings(pieces: Sequence[Piece], title: str) -> Iterator[Unit]:
    """The pieces as units. A heading replaces those before it, unless it follows them directly."""
    above = tuple(part for part in title.split(": ") if part)
    current: list[str] = []
    is_open = False  # whether nothing stands below the last heading yet
    for place, piece in enumerate(pieces):
        if piece.kind == "heading":
            current = [*(current[1 - MAX_HEADINGS :] if is_open else []), piece.text]
        is_open = piece.kind == "heading" or (is_open and piece.kind == "boilerplate")
        headings = () if piece.kind == "boilerplate" else (*above, *(current[:-1] if is_open else current))
        may_hang = piece.kind in ("sentence", "item") and not names_its_subject(piece.text, headings)
        is_item = piece.kind == "item"
        hangs = may_hang and (points_back(piece.text, is_item=is_item) or limits_what_stands_before(piece.text))
        doubtful = piece.kind == "sentence" and may_begin_with_heading(piece.text.split())
        yield Unit(piece.text, piece.kind, place, headings, hangs, may_have_heading=doubtful)


def _connect(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The units with what each needs: what it points back to or limits, what limits it, and an item's lead-in."""
    needs: list[set[int]] = [set() for _ in units]
    before = lead_in = -1  # places of the last statement of this section, and of the sentence that opens a list
    for unit in units:
        if unit.kind == "heading":
            before = lead_in = -1
        if not unit.is_statement:
            continue
        if unit.kind == "item" and lead_in >= 0:
            needs[unit.place].add(lead_in)
        if unit.points_back and before >= 0:
            needs[unit.place].add(before)
            if limits_what_stands_before(unit.text):
                needs[before].add(unit.place)
        before = unit.place
        if unit.kind != "item":
            lead_in = unit.place if unit.text.endswith(":") else -1
    return tuple(replace(unit, needs=tuple(sorted(needs[unit.place]))) for unit in units)
