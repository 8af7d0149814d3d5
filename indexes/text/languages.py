"""The language of a document or of a question, by its script, its stop words, and `py3langid`.

English is what a text is in where nothing surely says otherwise: its analysis is what all indexes had before.
The model is loaded only for what the stop words do not show to be English; that takes a second, once.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from indexes.text.analysis import ENGLISH, SNOWBALL, extract_stems, load_stop_words, word_set

KNOWN = frozenset(SNOWBALL) | word_set("ja ko zh bg cs et fa he hi hr id lt lv pl sk sl th uk vi")
ASKED_IN = ("en", "de", "fr", "es", "it", "nl", "pt")  # that a question is told by, beside those of the documents
SAMPLE_CHARACTERS = 5000  # of a document, that its language is told by
MIN_ENGLISH_WORDS = 3  # stop words, from which a text is English without a look at the model
MIN_WORDS = 20  # of a document whose language is told though it has no stop words of it
SURE, SURE_WITHOUT_STOP_WORDS = 0.7, 0.9  # probability of the language of a question
SURE_OF_DOCUMENT = 0.9
MIN_CJK_SHARE = 0.2  # of the letters
_WORD = re.compile(r"[^\W\d_]+")
_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA, _HANGUL = re.compile(r"[\u3040-\u30ff]"), re.compile(r"[\uac00-\ud7af]")


def find_document_language(texts: Iterable[str]) -> str:
    """The language of a document, by the beginning of its texts; English where that is not sure.

    It is one that the model is sure of and that the beginning has more stop words of than of English. A longer text, as
    a table of names, needs no stop words.
    """
    sample = " ".join(islice(texts, SAMPLE_CHARACTERS))[:SAMPLE_CHARACTERS]  # each has a character at least, its space
    if language := _find_by_script(sample):
        return language
    words = _WORD.findall(sample.lower())
    counts = _count_all(words, KNOWN)
    if _is_plain_english(counts, len(words)):
        return ENGLISH
    best, probability = rank_languages(sample, KNOWN)[0]
    ahead = counts[best] - counts[ENGLISH]
    is_sure = probability >= SURE_OF_DOCUMENT and (ahead > 0 or (ahead == 0 and len(words) >= MIN_WORDS))
    return best if is_sure else ENGLISH


@lru_cache(maxsize=1024)
def find_question_language(question: str, languages: Collection[str] = ()) -> str:
    """The language of a question, one of `ASKED_IN` or of `languages` (a tuple); "" where it is not sure."""
    if language := _find_by_script(question):
        return language
    words = _WORD.findall(question.lower())
    if not words:
        return ""
    candidates = frozenset(ASKED_IN) | frozenset(languages)
    counts = _count_all(words, candidates)
    if _is_plain_english(counts, len(words)):
        return ENGLISH
    best, probability = rank_languages(question, candidates)[0]
    if counts[best] >= counts[ENGLISH] and probability >= (SURE if counts[best] else SURE_WITHOUT_STOP_WORDS):
        return best
    first, second = sorted(counts, key=lambda language: -counts[language])[:2]
    return first if counts[first] > counts[second] else ""


def _count_all(words: Sequence[str], languages: Iterable[str]) -> dict[str, int]:
    """How many words are stop words of each language."""
    counted = Counter(words)
    distinct = frozenset(counted)
    return {each: sum(counted[word] for word in distinct & load_stop_words(each)) for each in sorted(languages)}


def _is_plain_english(counts: Mapping[str, int], words: int) -> bool:
    """Whether the stop words alone show that a text of so many words is in English."""
    english = counts[ENGLISH]
    others = max(count for language, count in counts.items() if language != ENGLISH)
    return not words or (english > others and (english >= MIN_ENGLISH_WORDS or 2 * english >= words))


def _find_by_script(text: str) -> str:
    """Japanese, Korean or Chinese, by their characters; "" for all other languages."""
    letters = len("".join(_WORD.findall(text)))
    kana, hangul, chinese = (len(script.findall(text)) for script in (_KANA, _HANGUL, _CHINESE))
    if not letters or kana + hangul + chinese < MIN_CJK_SHARE * letters:
        return ""
    if hangul >= max(kana, chinese):
        return "ko"
    return "ja" if 10 * kana >= chinese else "zh"


def rank_languages(text: str, candidates: frozenset[str]) -> list[tuple[str, float]]:
    """The candidates with their probabilities, the likeliest first."""
    found = [(language, share) for language, share in _load_identifier().rank(text) if language in candidates]
    total = sum(share for _, share in found) or 1.0
    return [(language, share / total) for language, share in found]


@cache
def _load_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def stem_query(text: str, languages: Sequence[str]) -> list[str]:
    """The stems of a query as documents of these languages have them, as often as they occur.

    The stop words of its own language are left out; where that is not known, those of each language are.
    """
    if set(languages) <= {ENGLISH}:
        return extract_stems(text)
    own, counts = find_question_language(text, tuple(languages)), Counter[str]()
    for language in languages:
        counts |= Counter(extract_stems(text, language, own))
    return [*counts.elements()]


WeightedText = tuple[str, float]  # a text to search with, and the weight of each of its words


def weight_stems(parts: Iterable[WeightedText], languages: Sequence[str] = (ENGLISH,)) -> dict[str, float]:
    """The weight of each stem of some texts. A stem that occurs twice counts twice."""
    weights: dict[str, float] = {}
    for text, weight in parts:
        for stem in stem_query(text, languages):
            weights[stem] = weights.get(stem, 0.0) + weight
    return weights
