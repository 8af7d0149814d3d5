"""Whether an utterance leans on the conversation before it, or names all that it is about.

By its words, in English and German: it points back ("it", "there", "the two"), goes on ("And ...?"), or says too little
to stand alone. A question with words of its own and none of these begins a subject of its own, or names the old one.
"""

import re

from agent.turn.spans.question_words import stem_words
from indexes.text.analysis import load_stop_words
from indexes.text.languages import find_question_language
from indexes.words import match_any

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
