"""Text analysis: the stems that texts and queries are indexed and searched by."""

import runpy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
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
    """spaCy's stop words of a language, in lower case. They are more than the index leaves out.

    The module is run by itself: importing it as a part of `spacy.lang` compiles the language's tokenizer, too, which
    takes two seconds for French.
    """
    spacy = find_spec("spacy")
    assert spacy is not None
    words = runpy.run_path(str(Path(str(spacy.origin)).parent / "lang" / language / "stop_words.py"))
    return frozenset(words["STOP_WORDS"])


def word_set(words: str) -> frozenset[str]:
    """The words of a text that are apart by white space."""
    return frozenset(words.split())
