"""A text's words as the index knows them."""

from functools import cache
from importlib import import_module
from typing import Any

import tantivy

ANALYZER = "english: words, lower case, ASCII, stop words, Snowball stems"


def stems(text: str) -> list[str]:
    """Lower-case stems in order, stop words left out."""
    return list(analyzer().analyze(text))


@cache
def analyzer() -> Any:
    """The analyzer of passages and of queries."""
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
def stop_words(language: str = "en") -> frozenset[str]:
    """spaCy's, in lower case: more than the index leaves out."""
    return frozenset(import_module(f"spacy.lang.{language}.stop_words").STOP_WORDS)
