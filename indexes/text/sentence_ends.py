"""Where sentences end in English and German text, told word by word.

spaCy's rule sentencizer ends a sentence after every full stop that is a token of its own, so "am 3. Mai", "z. B. Obst"
and "No. 5" are cut. Here a full stop counts only where the word before it is no abbreviation, ordinal or initial and
the word after it can begin a sentence. The abbreviations are those of spaCy's English and German tokenizers,
and some more.
"""

import re
from collections.abc import Sequence
from functools import cache

from indexes.text.analysis import load_stop_words
from indexes.text.dates import MONTHS
from indexes.words import load_words

OPENING, CLOSING = "\"'“‘„«‹([{*_", "\"'”’“»›)]}*_"
STOPS = ".!?…。！？"
_NOTE_MARK = re.compile(r"(?<=[^\W\d][.!?])(?:(?:\[\w{1,4}\])+|\d{1,2})$")  # "effects.[3]"
_WITHIN, _BEFORE_NUMBERS, _MAY_END, _LETTERED, _BEFORE_ORDINALS = (
    load_words(f"abbreviations.{name}")  # without white space and the last full stop
    for name in ("within", "before_numbers", "may_end", "lettered", "before_ordinals")
)


def find_sentence_starts(words: Sequence[str]) -> list[int]:
    """The numbers of the words that begin a sentence; of a text with words, the first is 0."""
    ends = (number for number in range(1, len(words)) if ends_sentence(words, number - 1))
    return [0, *ends] if words else []


def ends_sentence(words: Sequence[str], place: int) -> bool:
    """Whether a sentence ends with the word at a place, as far as that word, the one before and the next one tell."""
    bare = _NOTE_MARK.sub("", words[place]).rstrip(CLOSING)
    stop = bare[len(bare.rstrip(STOPS)) :]
    if not stop or place + 1 == len(words):
        return bool(stop)
    following = words[place + 1].lstrip(OPENING)
    if following[:1].islower() and not re.match(r"[a-z]{1,2}[A-Z]", following):
        return False
    if stop != ".":
        return stop not in ("...", "…") or following[:1].isupper()
    return not _belongs_to_word(bare[:-1].lstrip(OPENING), words[place - 1] if place else "", following)


def _belongs_to_word(word: str, before: str, following: str) -> bool:
    """Whether a full stop belongs to the word: an ordinal, an initial or an abbreviation."""
    lower, numbered = word.lower(), following[:1].isdigit()
    if re.fullmatch(r"\d{1,2}", word):
        return is_ordinal(before, following)
    if len(word) == 1 and word.isalpha():
        return _is_initial(word, before, following, numbered)
    if lower in _WITHIN or (numbered and (lower in _BEFORE_NUMBERS or lower.endswith("str"))):
        return True
    return (lower in _MAY_END or f"{word}." in _load_abbreviations()) and not opens_sentence(following)


def is_ordinal(before: str, following: str) -> bool:
    """Whether a number with a full stop between two words counts something: "am 3. Mai", "im 19. Jahrhundert"."""
    if following.rstrip(".,;:)").lower() in MONTHS:
        return True
    return before.strip(OPENING).lower() in _BEFORE_ORDINALS and not opens_sentence(following)


def _is_initial(letter: str, before: str, following: str, numbered: bool) -> bool:
    """Whether a letter with a full stop is a part of a name or of an abbreviation: "J. Doe", "z. B.", "p. 12"."""
    if before.lower() in _LETTERED:
        return False
    if letter.lower() in _BEFORE_NUMBERS and numbered:
        return True
    if re.fullmatch(r"[\W_]*[a-zäöü]\.", before):  # the second letter of "z. B."
        return before[-2:] + letter.lower() not in ("u.a", "o.ä", "u.ä") or not opens_sentence(following)
    return not opens_sentence(following) and not (letter.islower() and before[:1].isdigit())


def opens_sentence(word: str) -> bool:
    bare = re.split(r"['’]", word.strip(OPENING + CLOSING + ",;:"))[0]
    return bare[:1].isupper() and any(bare.lower() in load_stop_words(language) for language in ("en", "de"))


@cache
def _load_abbreviations() -> frozenset[str]:
    from spacy.lang.de.tokenizer_exceptions import TOKENIZER_EXCEPTIONS as GERMAN
    from spacy.lang.en.tokenizer_exceptions import TOKENIZER_EXCEPTIONS as ENGLISH

    return frozenset(key for key in (*ENGLISH, *GERMAN) if re.fullmatch(r"[^\W\d_]{2}[\w.]*\.", key))
