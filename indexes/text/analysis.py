"""Text analysis: the stems that texts and queries are indexed and searched by.

Languages are named by their ISO 639-1 codes. An index of passages takes all text for English; in an index of documents
each has the stop words and the stemmer of its own language (docs/adr/0008-own-documents.md).
"""

import re
import runpy
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Filter

ANALYZER = "english: words, lower case, ASCII, stop words, Snowball stems"


ENGLISH = "en"
_STEMMERS = (
    "ar arabic, da danish, de german, el greek, en english, es spanish, fi finnish, fr french, hu hungarian, "
    "it italian, nl dutch, no norwegian, pt portuguese, ro romanian, ru russian, sv swedish, ta tamil, tr turkish"
)
SNOWBALL: dict[str, str] = dict(pair.split() for pair in _STEMMERS.split(", "))
WITHOUT_STOP_WORDS = frozenset(["ar", "el", "ro", "ta", "tr"])  # of Tantivy; it has those of the others with a stemmer
_SPACY_FOLDERS = {"no": "nb"}
_BY_LANGUAGE = "by language: words, lower case, stop words, Snowball stems, ASCII; CJK in pairs of characters; of "
_CJK = re.compile(r"[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")


def extract_stems(text: str, language: str = ENGLISH, own: str = "") -> list[str]:
    """A text's stems in order, in lower case and without stop words, which are those of `own` where that is given."""
    if language == ENGLISH and own in ("", ENGLISH):
        return list(build_analyzer().analyze(text))
    return list(_build_foreign_analyzer(language, own or language).analyze(separate_pairs(text)))


def separate_pairs(text: str) -> str:
    """A text in which Chinese, Japanese and Korean is written as overlapping pairs of characters, with white space."""

    def separate(run: re.Match[str]) -> str:
        pairs = (run[0][start : start + 2] for start in range(max(1, len(run[0]) - 1)))
        return f" {' '.join(pairs)} "

    return _CJK.sub(separate, text)


def describe_analyzer(languages: Iterable[str]) -> str:
    """How the texts of an index are analysed, as its info says it. `languages` are those of its documents."""
    codes = sorted(set(languages))
    return ANALYZER if set(codes) <= {ENGLISH} else _BY_LANGUAGE + " ".join(codes)


def list_languages(analyzer: str) -> tuple[str, ...]:
    """The languages of an index, from its description of the analyzer."""
    return tuple(analyzer.removeprefix(_BY_LANGUAGE).split()) if analyzer.startswith(_BY_LANGUAGE) else (ENGLISH,)


@cache
def build_analyzer() -> Any:
    return _build_analyzer(Filter.ascii_fold(), Filter.stopword("english"), Filter.stemmer("english"))


def _build_analyzer(*filters: Any) -> Any:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for each in (Filter.remove_long(60), Filter.lowercase(), *filters):
        builder = builder.filter(each)
    return builder.build()


@cache
def build_splitter() -> Any:
    """The analyzer of an index whose texts are given to it as stems with white space between them."""
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()


@cache
def _build_foreign_analyzer(stemmed_as: str, stopped_as: str) -> Any:
    """Stop words of one language (Tantivy's, else spaCy's), and the stemmer of another or the same, if it has one."""
    if stopped_as in SNOWBALL and stopped_as not in WITHOUT_STOP_WORDS:
        stop = Filter.stopword(SNOWBALL[stopped_as])
    else:
        stop = Filter.custom_stopword(sorted(load_stop_words(stopped_as)))
    stem = [Filter.stemmer(SNOWBALL[stemmed_as])] if stemmed_as in SNOWBALL else []
    return _build_analyzer(stop, *stem, Filter.ascii_fold())


@cache
def load_stop_words(language: str = "en") -> frozenset[str]:
    """spaCy's stop words of a language, in lower case. They are more than the index leaves out.

    The module is run by itself: importing `spacy.lang.fr` takes two seconds, since it compiles the tokenizer.
    """
    spacy = find_spec("spacy")
    assert spacy is not None
    folder = _SPACY_FOLDERS.get(language, language)
    words = runpy.run_path(str(Path(str(spacy.origin)).parent / "lang" / folder / "stop_words.py"))
    return frozenset(words["STOP_WORDS"])


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())
