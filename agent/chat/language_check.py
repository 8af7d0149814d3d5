"""Whether a text is in English, the only language that is understood here, or in another that an answer may have."""

import re

from indexes.text.analysis import load_stop_words

LANGUAGES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "dutch": "nl",
    "portuguese": "pt",
    "polish": "pl",
    "swedish": "sv",
    "turkish": "tr",
}


def is_in_language(text: str, name: str) -> bool:
    """Whether no other of the languages has as many stop words among the words of a text as the one of this name."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {code: _count_stop_words(words, code) for code in LANGUAGES.values()}
    own = counts.pop(LANGUAGES[name.lower()])
    return own > max(counts.values())


def looks_english(text: str) -> bool:
    """Whether at least half of the words are in Latin letters, and no other language has more stop words among them."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    latin = sum(word < "\u0250" for word in words)
    return 2 * latin >= len(words) and all(
        _count_stop_words(words, "en") >= _count_stop_words(words, other) for other in LANGUAGES.values()
    )


def _count_stop_words(words: list[str], language: str) -> int:
    return sum(word in load_stop_words(language) for word in words)
