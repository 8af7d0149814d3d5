"""Text analysis: the stems that texts and queries are indexed and searched by."""

from functools import cache
from importlib import import_module
from typing import Any

import tantivy

ANALYZER = "english: words, lower case, ASCII, stop words, Snowball stems"


def extract_stems(text: str) -> list[str]:
    """A text's stems in order, in lower case and without stop words."""
    return list(build_analyzer().analyze(text))


@cache
def build_analyzer() -> Any:
    """The analyzer of passages and queries."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(60))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


@cache
def load_stop_words(language: str = "en") -> frozenset[str]:
    """spaCy's stop words of a language, in lower case. They are more than the index leaves out."""
    return frozenset(import_module(f"spacy.lang.{language}.stop_words").STOP_WORDS)


def word_set(words: str) -> frozenset[str]:
    """The words of a text that are apart by white space."""
    return frozenset(words.split())
