"""Whether a passage supports a sentence, whoever wrote it: every word, number, name and negation counts.

By rules, without a model. A sentence is supported where each of its parts (between commas and the like) is an excerpt
of one sentence of the passage: its words in the same order, some perhaps left out, negated where the passage negates
them. That is strict: the same thing said in other words is not supported. Neither the likelihood of a 135M model nor
the cosine of MiniLM tells a paraphrase from a sentence in which one word was changed (docs/log.md), and one that is
wrongly taken for supported misleads. What a model writes may say the question again
(`agent/turn/writing/paraphrase.py`). `tests/support_pairs.jsonl` has cases of every kind.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate

from indexes.text.analysis import extract_stems, load_stop_words
from indexes.text.units import split_units
from indexes.words import list_words
from schemas.records import Passage

NEGATION_SCOPE = 4  # words that a negation reaches
NEGATIONS = frozenset(list_words("negations"))
MEANINGFUL_STOP_WORDS = frozenset(list_words("meaningful"))
DIGITS = {word: str(number) for number, word in enumerate(list_words("numbers", ["en"])[:13])}
PARTS = re.compile(r"[,;:()–—]\s|\s(?=(?:and|but|while|whereas|so|although|though|because|since)\b)")
_WORD = re.compile(r"\d(?:[\d.,:]*\d)?|\w+(?:['’]\w+)?|[.,;:!?()]")


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A word that says something: its stem, or a number as digits; and whether a negation reaches it."""

    stem: str
    negated: bool


def is_supported(sentence: str, passage: str) -> bool:
    """Whether the passage supports the sentence."""
    if is_excerpt(sentence, passage):
        return True
    parts = [words for part in PARTS.split(sentence) if (words := content_words(part))]
    said = _content_sentences(passage)
    return bool(parts) and all(any(is_subsequence(part, words) for words in said) for part in parts)


def supporting_ids(sentence: str, passages: Iterable[Passage]) -> tuple[str, ...]:
    """The ids of the passages that support a sentence."""
    return tuple(passage.id for passage in passages if is_supported(sentence, passage.text))


def is_subsequence(part: Sequence[object], whole: Iterable[object]) -> bool:
    """Whether all of a sequence stands in another, in its order."""
    rest = iter(whole)
    return all(item in rest for item in part)


@lru_cache(maxsize=64)
def _content_sentences(passage: str) -> tuple[tuple[ContentWord, ...], ...]:
    return tuple(content_words(unit.text) for unit in split_units(Passage("", passage)))


def tokenize(text: str) -> list[str]:
    """Words and marks, in lower case."""
    return _WORD.findall(text.lower().replace("’", "'").replace("'s ", " ").replace("cannot", "can not"))


def content_words(text: str) -> tuple[ContentWord, ...]:
    """The words that say something, in order. A negation is none of them: it marks the next few, up to a comma."""
    words: list[ContentWord] = []
    reach = 0
    for token in tokenize(text):
        if token in NEGATIONS or token.endswith("n't"):
            reach = NEGATION_SCOPE
        elif not token[0].isalnum():
            reach = 0
        elif token not in _filler_words():
            words.extend(ContentWord(stem, reach > 0) for stem in stem_token(token))
            reach = max(0, reach - 1)
    return tuple(words)


def stem_token(token: str) -> list[str]:
    """`4,500` is `4500`, `three` is `3`."""
    if token[0].isdigit():
        return [token.replace(",", "")]
    return [DIGITS[token]] if token in DIGITS else extract_stems(token)


@cache
def _filler_words() -> frozenset[str]:
    return load_stop_words() - MEANINGFUL_STOP_WORDS - NEGATIONS


def is_excerpt(sentence: str, passage: str) -> bool:
    """Whether a unit of the passage begins with these very words: what stands before them could deny them.

    So may a part of a unit after a colon or semicolon. A full stop may be added where a unit ends without one.
    """
    words = " ".join(sentence.split())
    if not words:
        return False
    units = [unit.text for unit in split_units(Passage("", passage))]
    held = " ".join(units)
    if words not in held:
        return words.endswith(".") and any(unit.rstrip(" :;,-–—") == words[:-1] for unit in units)
    starts = {0, *accumulate(len(unit) + 1 for unit in units)}
    return any(
        found.start() in starts or re.search(r"[…:;][\"'”’)\]]*\s$", held[max(0, found.start() - 8) : found.start()])
        for found in re.finditer(rf"(?<!\w)[\"'“‘(\[]*{re.escape(words)}", held)
    )


# Words that open a condition, and words by which a statement is less than the same without them.
CONDITIONS, HEDGES = (frozenset(list_words(name)) for name in ("conditions", "hedges"))
