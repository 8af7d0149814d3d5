"""The words of a question and of a sentence as stems, names and codes; and whether they lean on what was said before.

An utterance leans on the conversation where it points back ("it", "there", "the two"), goes on ("And ...?"), or says
too little to stand alone. A question with words of its own and none of these begins a subject of its own.
"""

import re
from functools import lru_cache

from agent.turn.attribution import content_words
from indexes.text.analysis import ENGLISH, extract_stems
from indexes.text.languages import ASKED_IN, find_question_language
from indexes.words import match_any


@lru_cache(maxsize=4096)
def stem_words(text: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The stems of the words that say something, in order."""
    if language != ENGLISH:
        return tuple(extract_stems(text, language))
    return tuple(word.stem for word in content_words(text))


_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]*\w")  # a word with a capital that does not open a sentence
_CODE = re.compile(r"\b(?=[\w.-]*\d)\w+(?:[.-]\w+)*")


def find_names(text: str) -> frozenset[str]:
    """The stems of the names in a text."""
    return frozenset(extract_stems(" ".join(_NAME.findall(text))))


def find_codes(text: str) -> frozenset[str]:
    """The numbers and codes in a text, in small letters: "e.17" of "It shows E.17"."""
    return frozenset(code.lower() for code in _CODE.findall(text))


MIN_OWN_WORDS = 2  # that an utterance which stands alone has at least
MAX_WORDS_GOING_ON = 3  # of its own that an utterance has which begins with "why": "Why did the synchronisation stop?"
_THAT = r"that\b(?!\s+(?:i|you|we|he|she|they|it|the|my|our|is|are|was|were|has|have|can|will|does|do|did|contains?)\b)"
_POINTS, _GOES_ON = (
    {
        language: re.compile(before.format(match_any(name, [ENGLISH, "de", language])), re.IGNORECASE)
        for language in ASKED_IN
    }
    for name, before in (("points_back", rf"\b(?:{_THAT}|(?:{{}})\b)"), ("goes_on", r"\W*(?:{})\b"))
)
_ELLIPSIS = re.compile(
    r"\W*(?:(?:and|but|or|und|aber|oder|so)\b,?\s*)?(?:(?:what|how) about|was ist mit|wie ist es mit|and|und)\s+"
    r"(?P<what>(?:(?:in|on|at|for|with|by|from|im|am|bei|für|mit)\s+)?(?!(?:if|when|why|how|what|who|where|which|is|are|can|do"
    r"|does|did|will|should|wenn|wann|warum|wie|was|wer|wo|ist|sind|kann)\b)[^?]+)\??\s*",
    re.IGNORECASE,
)
_WHICH = re.compile(
    r"\W*(?:which|welche\w*)\b(?! (?!ones)\w+ (?:are|were|have|do|can|sind|waren|haben)\b)", re.IGNORECASE
)
MAX_WORDS_OF_WHICH = 2  # of "Which survive frost?": which of those before; not of "Which materials are toxic?"


def points_back(utterance: str, language: str = ENGLISH) -> bool:
    """Whether a word stands for something that was said before: "it", "there"."""
    return bool(_POINTS.get(language, _POINTS[ENGLISH]).search(utterance))


def leans_on_conversation(utterance: str) -> bool:
    """Whether an utterance cannot be understood without what was said before."""
    language = find_question_language(utterance) or ENGLISH
    own = len(set(stem_words(utterance, language)))
    if points_back(utterance, language) or (_WHICH.match(utterance) and own <= MAX_WORDS_OF_WHICH):
        return True
    goes_on = _GOES_ON.get(language, _GOES_ON[ENGLISH]).match(utterance)
    return own <= MAX_WORDS_GOING_ON if goes_on else own < MIN_OWN_WORDS


def asks_of_another(utterance: str) -> bool:
    """Whether an utterance asks what the one before did, of something else: "And the timing belt?"."""
    found = _ELLIPSIS.fullmatch(utterance)
    return found is not None and 0 < len(set(stem_words(found["what"]))) <= MAX_WORDS_GOING_ON
