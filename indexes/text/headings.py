"""Headings and boilerplate that are glued to the front of a sentence, and texts that are nothing else.

A heading is told from the words that follow it: a function word in capitals opens a sentence where a title runs on in
small ones ("Side Effects The most common side effects are ..."), or the sentence says a word of the heading again
("Traditional Cooking Traditional cooking methods ..."). Where neither is so, nothing is cut off.
"""

import re
from collections.abc import Sequence

from indexes.text.dates import MONTH
from indexes.words import compile_any, load_words

MAX_HEADING_WORDS = 30
MAX_WORD_CHARACTERS = 60  # that are looked at
WINDOW = 80  # words at the front of a sentence that are looked at
_SMALL, _OPENERS, _QUANTIFIERS, _PREPOSITIONS, _AFTER_PREPOSITIONS, _QUESTION_WORDS, _VERBS, _SECTIONS = (
    load_words(f"headings.{name}")
    for name in (
        *("small", "openers", "quantifiers", "prepositions", "after_prepositions"),
        *("question_words", "verbs", "sections"),
    )
)
_FUNCTION_WORDS = _SMALL | _OPENERS | _QUANTIFIERS | _PREPOSITIONS
_SIGNS = re.compile(  # of a menu or a byline that could not be told from the sentence behind it
    r"(?:\S+ ){0,14}(?:\||»|›|//)(?: |$)|[Bb]y [A-Z]\S+ [A-Z]|READ|Read More|Contents 1|(?:Medically )?[Rr]eviewed by"
)
_ENUMERATOR = re.compile(r"\(?\d{1,3}[.):]\)?|#\d{1,3}[.:]?|[•*–-]")

_BOILERPLATE_FRONT = compile_any("boilerplate.front", ignore_case=False, month=MONTH)
_BOILERPLATE_WHOLE = compile_any("boilerplate.whole", month=MONTH)
MAX_BOILERPLATE_CHARACTERS = 240  # of what is boilerplate as a whole; more are hardly ever


def count_glued_words(words: Sequence[str]) -> int:
    """How many words at the front of a sentence are a heading, a breadcrumb or a byline; 0 where that is not sure.

    Only the first 80 words count, and of each the first 60 characters.
    """
    front = [word[:MAX_WORD_CHARACTERS] for word in words[:WINDOW]]
    return len(match_boilerplate(" ".join(front)).split()) or _count_repeated_title(front) or _count_heading(front)


def is_heading(text: str) -> bool:
    """Whether a unit is a title of its own: no sentence's end, and every word that says something in capitals."""
    words = text.split()
    if _ENUMERATOR.fullmatch(words[0]):
        words = words[1:]
    if not words or len(words) > MAX_HEADING_WORDS or re.search(r"[.!;,…][\"'”’)\]]*$", text):
        return False
    return _is_title(words) and (len(words) >= 2 or not text.endswith("?"))


def begins_sentence(text: str) -> bool:
    """Whether a text begins with a function word in capitals and a word in small letters."""
    front = ["", *text.split()[:WINDOW]]
    return len(front) > 2 and _opens(front, 1)


def may_begin_with_heading(words: Sequence[str]) -> bool:
    """Whether a sentence may have a heading at its front, though that is not sure.

    It then begins with the same word twice, or with four words or more in capitals.
    """
    run = 0
    if _SIGNS.match(" ".join(words[:WINDOW])):
        return True
    if len(words) > 2 and _fold(words[0]) == _fold(words[1]) and words[0].isalpha():
        return True
    if _is_function(words[0]) or words[0] == "According":
        return False
    while run < len(words) and _is_titled(words[run]):
        run += 1
    capitals = [word for word in words[:run] if word[:1].isupper()]
    return len(capitals) >= 4 and run < len(words)


def _count_repeated_title(front: Sequence[str]) -> int:
    """A page's title that stands there twice, perhaps with its site's name and a menu between."""
    folded = [_fold(word) for word in front[: MAX_HEADING_WORDS + 10]]
    for again in range(2, min(len(front), MAX_HEADING_WORDS)):
        size = _count_same(folded, again)
        if size < 2 or not (front[0][:1].isupper() and front[again][:1].isupper()):
            continue
        separated = any(word in ("|", "-", "–", "»", "•") for word in front[size:again])
        between = all(map(_is_titled, front[size:again]))
        if again == size or (separated and between) or (size >= 3 and _is_title(front[:again])):
            behind = front[again + size][:1] if again + size < len(front) else "a"
            is_second_title = (separated or size >= 4) and (behind.isupper() or behind.isdigit())
            return again + size if is_second_title else again
    return 0


def _count_same(folded: Sequence[str], again: int) -> int:
    size = 0
    while size < again and again + size < len(folded) and folded[size] == folded[again + size] != "":
        size += 1
    return size


def _count_heading(front: Sequence[str]) -> int:
    """A title before a word that begins a sentence for sure."""
    numbered = int(bool(front) and bool(_ENUMERATOR.fullmatch(front[0])))
    for place in range(1 + numbered, min(len(front) - 1, MAX_HEADING_WORDS)):
        heading = front[numbered:place]
        if not _is_titled(heading[-1]) and len(heading) > 4:
            return 0
        if match_boilerplate(" ".join(front[place:])) and _is_title(heading) and not _is_function(heading[-1]):
            return place
        is_shouted = len(heading) >= 3 and all(word.isupper() for word in heading if word[:1].isalpha())
        if is_shouted and front[place][1:2].islower() and front[place + 1][:1].islower():
            return place
        if not _can_be_heading(heading, numbered=bool(numbered)):
            continue
        if _opens(front, place):
            return place
        if _repeats(heading, front, place, numbered=bool(numbered)):
            return _find_repeated_start(front, place)
    return 0


def _find_repeated_start(front: Sequence[str], place: int) -> int:
    """Where a sentence begins that says several words of the heading again, the place being of the last of them."""
    start = place
    while (
        start > 1
        and front[start - 1][:1].isalnum()
        and any(_fold(front[start - 1]).removesuffix("'s") == _fold(word) for word in front[: start - 1])
    ):
        start -= 1
    return start if front[start][:1].isupper() else place


def _can_be_heading(heading: Sequence[str], *, numbered: bool) -> bool:
    """Whether words before a sure beginning may be a heading: a title, or a few words without a verb."""
    last = heading[-1]
    if _is_function(last) or re.search(r"[,;.]$", last) or not heading[0][:1].isupper():
        return False
    if len(heading) == 1:
        return numbered or _fold(last) in _SECTIONS or "-" in last or last.endswith("ing")
    if _is_title(heading):
        return True
    verbs = any(_fold(word) in _VERBS or word.endswith((",", ";")) for word in heading)
    return len(heading) <= 5 and not verbs and not _is_function(heading[0])


def _opens(front: Sequence[str], place: int) -> bool:
    """Whether a function word in capitals with a word in small letters behind it opens a sentence."""
    word, following = _fold(front[place]), front[place + 1]
    if front[place] == "One" and following == "of":
        return True
    if not front[place][:1].isupper() or front[place][-1] in ",:;" or not following[:1].islower():
        return False
    before = _fold(front[place - 1])
    if word in _QUANTIFIERS:
        return before not in _SMALL and not before.isdigit()
    if word in _PREPOSITIONS:
        rest = front[place + 1 : place + 14]
        return _fold(following) in _AFTER_PREPOSITIONS and any(part.endswith(",") for part in rest)
    asks = _fold(front[0]) in _QUESTION_WORDS and word in ("if", "when", "while", "it", "your", "there")
    return word in _OPENERS and not asks and not (word == "the" and before in _SMALL)


def _repeats(heading: Sequence[str], front: Sequence[str], place: int, *, numbered: bool) -> bool:
    word, following = front[place], front[place + 1]
    if not word[:1].isupper() or _is_function(word) or not (following[:1].islower() or following[:1] == "("):
        return False
    if len(heading) == 1:
        return _fold(word) == _fold(heading[0]) and (numbered or word != heading[0] or word.endswith("ing"))
    if any("," in other for other in heading):
        return False
    if _is_title(heading) and any(_is_same(word, other) for other in heading):
        joins = _fold(following) in ("and", "or", "&", "of", "in", "und", "oder")
        return (not joins or _is_same(word, heading[0])) and heading[-1] not in ("&", "and", "und")
    return len(heading) <= 4 and _fold(word) == _fold(heading[0]) and not any(map(_is_function, heading))


def _is_title(words: Sequence[str]) -> bool:
    """Whether words are in title case: no word in small letters but function words."""
    if not words or not all(_is_titled(word) for word in words):
        return False
    return bool(re.match(r"[\W_]*(?:[A-ZÄÖÜ]|\d)", words[0])) and any(word[:1].isupper() for word in words)


def _is_titled(word: str) -> bool:
    bare = word.strip("\"'“”‘’()[]{}*:,?!")
    return not bare or bare.lower() in _SMALL or not bare[0].islower() or bool(re.match(r"[a-z]{1,2}[A-Z]", bare))


def _is_function(word: str) -> bool:
    return _fold(word) in _FUNCTION_WORDS


def _is_same(one: str, other: str) -> bool:
    short, long = sorted((_fold(one), _fold(other)), key=len)
    return len(short) >= 4 and long.startswith(short[: max(4, len(short) - 2)])


def _fold(word: str) -> str:
    return word.lower().replace("’", "'").strip("\"'“”‘()[]{}*:,;.!?")


def match_boilerplate(text: str) -> str:
    """The boilerplate that a text begins with, up to white space; empty where there is none."""
    found = _BOILERPLATE_FRONT.match(text)
    if not found or (text[found.end() :][:1].strip() and not found[0].endswith(" ")):
        return ""
    return found[0].strip()


def is_boilerplate(text: str) -> bool:
    """Whether a unit is nothing but boilerplate, or has no word at all."""
    short = text[: MAX_BOILERPLATE_CHARACTERS + 1]
    if not re.search(r"[^\W\d_]", text) and not re.search(r"\d\S*\s?[%€$£°]|[€$£]\s?\d", short):
        return True
    return len(short) <= MAX_BOILERPLATE_CHARACTERS and bool(
        _BOILERPLATE_WHOLE.fullmatch(short) or match_boilerplate(short) == short
    )
