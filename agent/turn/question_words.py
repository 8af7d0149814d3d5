"""The words of a question and of a sentence as stems, names and codes; and whether they lean on what was said before.

An utterance leans on the conversation where it points back ("it", "there", "the two"), goes on ("And ...?"), or says
too little to stand alone. A question with words of its own and none of these begins a subject of its own.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from agent.turn.attribution import MEANINGFUL_STOP_WORDS, stem_token
from indexes.text.analysis import ENGLISH, extract_stems, load_stop_words
from indexes.text.languages import find_question_language
from indexes.words import list_words, match_any

_WORD = re.compile(r"\d(?:[\d.,:]*\d)?|[^\W_]+")
_PARTICLE = re.compile(r"(?P<verb>\w+)-(?P<particle>in|out|up|off|on|down)\b")
_GERMAN = re.compile(rf"\b(?:{match_any('telling')})\b")

# Words in whose place another makes another thing of it: the front tyre and the rear one.
CONTRASTS = (
    *list_words("contrasts"),
    *(day.lower() for day in list_words("weekdays", ["en"])),
    *(month.lower() for month in list_words("months", ["en"]) if month != "May"),
)


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


def _drop_german_fillers(text: str) -> str:
    if not _GERMAN.search(text.lower()):
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


OTHERS = ("fr", "es", "it", "nl")  # languages beside English and German whose words are known
MIN_OWN_WORDS = 2  # that an utterance which stands alone has at least
BOTH = ("en", "de")
_POINTS = re.compile(
    rf"\b(?:{match_any('points_back', BOTH)})\b"
    r"|\bthat\b(?!\s+(?:i|you|we|he|she|they|it|the|my|our|is|are|was|were|has|have|can|will|does|do|did|contains?)\b)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(rf"\W*(?:{match_any('goes_on', BOTH)})\b", re.IGNORECASE)
_ELLIPSIS = re.compile(
    r"\W*(?:(?:and|but|or|und|aber|oder|so)\b,?\s*)?(?:(?:what|how) about|was ist mit|wie ist es mit|and|und)\s+"
    r"(?P<what>(?:(?:in|on|at|for|with|by|from|im|am|bei|für|mit)\s+)?(?!(?:if|when|why|how|what|who|where|which|is|are|can|do"
    r"|does|did|will|should|wenn|wann|warum|wie|was|wer|wo|ist|sind|kann)\b)[^?]+)\??\s*",
    re.IGNORECASE,
)
_POINTS_OTHERWISE, _GOES_ON_OTHERWISE = (
    {language: re.compile(rf"{before}(?:{match_any(name, [language])})\b", re.IGNORECASE) for language in OTHERS}
    for name, before in (("points_back", r"\b"), ("goes_on", r"\W*"))
)
MAX_WORDS_GOING_ON = 3  # of its own that an utterance has which begins with "why": "Why did the synchronisation stop?"


_LETTERS = re.compile(r"[^\W\d_]+")
_WHICH = re.compile(r"\W*(?:which|welche\w*)\b", re.IGNORECASE)
MAX_WORDS_OF_WHICH = 2  # of "Which survive frost?": which of those before
_TURNS_AWAY = re.compile(rf"\W*(?:{match_any('turns_away')})\b", re.IGNORECASE)


def leans_on_conversation(utterance: str) -> bool:
    """Whether an utterance cannot be understood without what was said before."""
    if _TURNS_AWAY.match(utterance):
        return False
    if _POINTS.search(utterance) or _leans_in_its_language(utterance):
        return True
    own = len(set(stem_words(utterance)))
    if _WHICH.match(utterance) and own <= MAX_WORDS_OF_WHICH:
        return True
    return own <= MAX_WORDS_GOING_ON if _GOES_ON.match(utterance) else own < MIN_OWN_WORDS


def _leans_in_its_language(utterance: str) -> bool:
    """The same by the words of another language than English and German, where the utterance surely is in it."""
    language = find_question_language(utterance)
    if language not in _GOES_ON_OTHERWISE:
        return False
    if _POINTS_OTHERWISE[language].search(utterance):
        return True
    said = [word for word in _LETTERS.findall(utterance.lower()) if word not in load_stop_words(language)]
    return bool(_GOES_ON_OTHERWISE[language].match(utterance)) and len(set(said)) <= MAX_WORDS_GOING_ON


def asks_of_another(utterance: str) -> bool:
    """Whether an utterance asks what the one before did, of something else: "And the timing belt?"."""
    return 0 < len(set(stem_words(find_other(utterance)))) <= MAX_WORDS_GOING_ON


def find_other(utterance: str) -> str:
    """Of what else an utterance asks what the one before did: "in May" of "And in May?"; empty of any other."""
    found = _ELLIPSIS.fullmatch(utterance)
    return found["what"].strip() if found else ""
