"""Where sentences end in English and German text, told word by word.

spaCy's rule sentencizer ends a sentence after every full stop that is a token of its own, so "am 3. Mai", "z. B. Obst"
and "No. 5" are cut. Here a full stop counts only where the word before it is no abbreviation, ordinal or initial and
the word after it can begin a sentence. The abbreviations are those of spaCy's English and German tokenizers,
and some more.
"""

import re
from collections.abc import Sequence
from functools import cache

from indexes.text.analysis import load_stop_words, word_set
from indexes.text.dates import MONTHS

OPENING, CLOSING = "\"'“‘„«‹([{*_", "\"'”’“»›)]}*_"
STOPS = ".!?…。！？"
_NOTE_MARK = re.compile(r"(?<=[^\W\d][.!?])(?:(?:\[\w{1,4}\])+|\d{1,2})$")  # "effects.[3]"
WITHIN = word_set(  # abbreviations that never end a sentence, without white space and the last full stop
    "mr mrs ms dr prof st hr fr dipl e.g i.e z.b d.h bzw ca approx ggf evtl inkl exkl zzgl vgl sog bspw vs v "
    "tel resp incl insb gem lt geb gen sen rep gov rev capt sgt lt messrs cf i.d.r u.u"
)
BEFORE_NUMBERS = word_set(  # that do not end one before a number
    "no nos nr p pp fig figs abs art vol vols ch chap sec eq tab abb kap s bd ziff pos hs str para par ver op anm rn "
    "rs jan feb mar apr jun jul aug sep sept oct nov dec okt dez circa c"
)
MAY_END = word_set(  # that end one only before a word that often opens a sentence
    "etc usw u.a inc ltd co corp llc jr sr a.m p.m u.s u.k u.s.a e.u al min max std tsd mio mrd ave rd blvd dept est "
    "ph.d m.d b.a m.a o.ä u.ä bros mt ft dgl u.v.m usf"
)
_LETTERED = word_set("vitamin hepatitis type typ grade group gruppe box plan part teil phase class klasse")
BEFORE_ORDINALS = word_set(
    "am der die das den dem des im vom zum zur beim bis ab seit und vor nach ein eine einen einem einer jeder jede "
    "jedes jeden jedem ihr ihre sein seine ihrem seinem dieser dieses diesem"
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
    if lower in WITHIN or (numbered and (lower in BEFORE_NUMBERS or lower.endswith("str"))):
        return True
    return (lower in MAY_END or f"{word}." in _load_abbreviations()) and not opens_sentence(following)


def is_ordinal(before: str, following: str) -> bool:
    """Whether a number with a full stop between two words counts something: "am 3. Mai", "im 19. Jahrhundert"."""
    if following.rstrip(".,;:)").lower() in MONTHS:
        return True
    return before.strip(OPENING).lower() in BEFORE_ORDINALS and not opens_sentence(following)


def _is_initial(letter: str, before: str, following: str, numbered: bool) -> bool:
    """Whether a letter with a full stop is a part of a name or of an abbreviation: "J. Doe", "z. B.", "p. 12"."""
    if before.lower() in _LETTERED:
        return False
    if letter.lower() in BEFORE_NUMBERS and numbered:
        return True
    if re.fullmatch(r"[\W_]*[a-zäöü]\.", before):  # the second letter of "z. B."
        return before[-2:] + letter.lower() not in ("u.a", "o.ä", "u.ä") or not opens_sentence(following)
    return not opens_sentence(following) and not (letter.islower() and before[:1].isdigit())


def opens_sentence(word: str) -> bool:
    """Whether a word is a function word with a capital letter."""
    bare = re.split(r"['’]", word.strip(OPENING + CLOSING + ",;:"))[0]
    return bare[:1].isupper() and bare.lower() in _function_words()


@cache
def _function_words() -> frozenset[str]:
    return load_stop_words() | {word.lower() for word in load_stop_words("de")}


@cache
def _load_abbreviations() -> frozenset[str]:
    """The abbreviations that spaCy's English and German tokenizers know."""
    from spacy.lang.de.tokenizer_exceptions import TOKENIZER_EXCEPTIONS as GERMAN
    from spacy.lang.en.tokenizer_exceptions import TOKENIZER_EXCEPTIONS as ENGLISH

    return frozenset(key for key in (*ENGLISH, *GERMAN) if re.fullmatch(r"[^\W\d_]{2}[\w.]*\.", key))
