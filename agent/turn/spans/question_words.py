"""The words of a question and of a sentence as stems, with the irregular verbs that a stemmer keeps apart."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from agent.turn.attribution import MEANINGFUL_STOP_WORDS, stem_token
from indexes.text.analysis import ENGLISH, extract_stems, load_stop_words
from indexes.words import list_tables, list_words, match_any

_WORD = re.compile(r"\d(?:[\d.,:]*\d)?|[^\W_]+")
_PARTICLE = re.compile(r"(?P<verb>\w+)-(?P<particle>in|out|up|off|on|down)\b")
_GERMAN = re.compile(rf"\b(?:{match_any('telling')})\b")

# Words in whose place another makes another thing of it: the front tyre and the rear one.
CONTRASTS = (
    *list_words("contrasts"),
    *(day.lower() for day in list_words("weekdays", ["en"])),
    *(month.lower() for month in list_words("months", ["en"]) if month != "May"),
)
_DIMENSIONS = list_tables("dimensions")
_CONDITION = re.compile(rf"\b(?:{match_any('restrictions')})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that may answer, and the headings that it stands under."""

    text: str
    heading: str = ""


def is_conditional(sentence: str) -> bool:
    """Whether a sentence has a condition, an exception or a hedge."""
    return bool(_CONDITION.search(sentence))


@lru_cache(maxsize=4096)
def stem_words(text: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The stems of the words that say something, in order; irregular English forms as their infinitive's."""
    if language != ENGLISH:
        return tuple(extract_stems(text, language))
    plain = _PARTICLE.sub(
        r"\g<verb>\g<particle>", _drop_german_fillers(text).lower().replace("’", "'").replace("'s", "")
    )
    words = [word for word in _WORD.findall(plain) if word not in _filler_words()]
    stems = [stem for word in words for stem in stem_token(word)]
    return tuple(_base_forms().get(stem, stem) for stem in stems)


@cache
def _filler_words() -> frozenset[str]:
    return load_stop_words() - MEANINGFUL_STOP_WORDS - set(CONTRASTS)


def dimensions_of(text: str) -> set[str]:
    """Which dimensions a text speaks of: a wardrobe's height is not its depth."""
    words = set(_WORD.findall(text.lower()))
    return {name for name, group in _DIMENSIONS.items() if words & set(group)}


def is_german(text: str) -> bool:
    """Whether a text has one of the commonest German words."""
    return bool(_GERMAN.search(text.lower()))


def _drop_german_fillers(text: str) -> str:
    if not is_german(text):
        return text
    return " ".join(word for word in text.split() if word.lower().strip("?,.;:!") not in load_stop_words("de"))


@cache
def _base_forms() -> Mapping[str, str]:
    """The stem of every irregular form, and the stem that stands for it."""
    forms = [[stem for word in group.split() for stem in extract_stems(word)] for group in list_words("irregular")]
    return {stem: group[0] for group in forms for stem in group[1:]}


_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]*\w")  # a word with a capital that does not open a sentence
_CODE = re.compile(r"\b(?=[\w.-]*\d)\w+(?:[.-]\w+)*")


def find_names(text: str) -> frozenset[str]:
    """The stems of the names in a text."""
    return frozenset(extract_stems(" ".join(_NAME.findall(text))))


def find_codes(text: str) -> frozenset[str]:
    """The numbers and codes in a text, in small letters: "e.17" of "It shows E.17"."""
    return frozenset(code.lower() for code in _CODE.findall(text))
