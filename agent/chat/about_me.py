"""What a person says about themselves while asking, and whether it is in a language that can be read."""

import re
from functools import cache
from importlib import import_module

from agent.sentences import split_sentences

_OF_ONESELF = re.compile(r"(?:i|i'm|i've|my|we|we're|our)\b", re.IGNORECASE)
_NO_FACT = re.compile(
    r"(?:i|we)\b(?:'d|'m| would| do| am| was)? ?(?:want|need|like to know|wonder(?:ing)?|think|guess|mean|see"
    r"|understand|agree|hope|asking|looking|asked|said)\b",
    re.IGNORECASE,
)
OTHERS = ("de", "fr", "es", "it", "nl", "pt", "pl", "sv", "tr")  # languages whose stop words spaCy has


def said_of_oneself(utterance: str) -> tuple[str, ...]:
    """Sentences in which the person says what they are, have or like; no questions, no wishes to know."""
    sentences = split_sentences(utterance.replace("’", "'"))
    return tuple(
        sentence
        for sentence in sentences
        if _OF_ONESELF.match(sentence) and not _NO_FACT.match(sentence) and not sentence.endswith("?")
        if len(sentence.split()) > 1
    )


def looks_english(text: str) -> bool:
    """Whether no other language has more of its stop words in it, and most letters are Latin ones."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    latin = sum(word < "\u0250" for word in words)
    return 2 * latin >= len(words) and all(_common(words, "en") >= _common(words, other) for other in OTHERS)


def _common(words: list[str], language: str) -> int:
    return sum(word in _stop_words(language) for word in words)


@cache
def _stop_words(language: str) -> frozenset[str]:
    return frozenset(import_module(f"spacy.lang.{language}.stop_words").STOP_WORDS)
