"""Whether a text is in the language that an answer was asked for in."""

import re

from indexes.text.languages import count_stop_words

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
    counts = {code: count_stop_words(words, code) for code in LANGUAGES.values()}
    own = counts.pop(LANGUAGES[name.lower()])
    return own > max(counts.values())
