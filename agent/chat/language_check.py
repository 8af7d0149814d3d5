"""Whether a text is in English, the only language that is understood here."""

import re

from indexes.text.analysis import load_stop_words

OTHER_LANGUAGES = ("de", "fr", "es", "it", "nl", "pt", "pl", "sv", "tr")  # languages whose stop words spaCy has


def looks_english(text: str) -> bool:
    """Whether at least half of the words are in Latin letters, and no other language has more stop words among them."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    latin = sum(word < "\u0250" for word in words)
    return 2 * latin >= len(words) and all(
        _count_stop_words(words, "en") >= _count_stop_words(words, other) for other in OTHER_LANGUAGES
    )


def _count_stop_words(words: list[str], language: str) -> int:
    return sum(word in load_stop_words(language) for word in words)
