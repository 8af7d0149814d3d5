"""Whether a passage supports a sentence, whoever wrote it: every word, number, name and negation counts.

By rules, without a model, so that what is wrong can be said. A sentence is supported where each of its parts (between
commas and the like) is an excerpt of one sentence of the passage: its words in the same order, some perhaps left out,
negated where the passage negates them. That is strict: the same thing said in other words is not supported. Neither the
likelihood of a 135M model nor the cosine of MiniLM tells a paraphrase from a sentence in which one word was changed
(docs/log.md), and a sentence that is wrongly taken for unsupported is replaced by the passage's own
(`agent/turn/writing/large_model.py`), while one that is wrongly taken for supported misleads. What a model writes must
keep conditions and hedges besides (`why_misstated`). `tests/support_pairs.jsonl` has cases of every kind.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
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


def why_unsupported(sentence: str, passage: str) -> str:
    """Why the passage does not support the sentence, in words for a person; empty where it does."""
    if is_excerpt(sentence, passage):
        return ""
    said = _content_sentences(passage)
    held = {word.stem for words in said for word in words}
    claimed = content_words(sentence)
    if missing := [word.stem for word in claimed if word.stem not in held]:
        return f"the passage does not say {', '.join(dict.fromkeys(missing))}"
    if not claimed:
        return "it says nothing"
    for part in filter(None, map(content_words, PARTS.split(sentence))):
        if reason := _why_in_no_sentence(part, said):
            return reason
    return ""


def supporting_ids(sentence: str, passages: Iterable[Passage]) -> tuple[str, ...]:
    """The ids of the passages that support a sentence."""
    return tuple(passage.id for passage in passages if not why_unsupported(sentence, passage.text))


def _why_in_no_sentence(part: Sequence[ContentWord], said: Iterable[Sequence[ContentWord]]) -> str:
    """Why no sentence of the passage says this part of the claim; empty where one does."""
    reason = f"no sentence of the passage says {' '.join(word.stem for word in part)} in this order"
    for words in said:
        if is_subsequence([word.stem for word in part], [word.stem for word in words]):
            if is_subsequence(part, words):
                return ""
            turned = [word.stem for word in part if word not in words]
            reason = f"only one of them negates {', '.join(turned) or 'this'}"
    return reason


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
CONDITIONS, REASONS, HEDGES = (frozenset(list_words(name)) for name in ("conditions", "reasons", "hedges"))
RELATIVES = frozenset({"that", "who", "which", "whose"})  # open a condition where no comma stands before them
_CLAUSES = re.compile(r"[;:]\s|,\s(?=(?:and|so)\b)|,?\s(?=(?:but|while|whereas|although|though|yet|because)\b)")
RELATIVE_WORDS = 2  # that belong to a relative clause, whose end is not known, at least
FRACTIONS = frozenset({"half", "part", "most", "some", "many", *DIGITS})  # before "of"
_MAY = re.compile(r"(?<=[\w,] )May\b")


def why_misstated(sentence: str, passage: str) -> str:
    """Why the passage does not support a sentence in other words, conditions and all; empty where it does."""
    reason = why_unsupported(sentence, passage)
    if reason or is_excerpt(sentence, passage):
        return reason
    sentence, said = _name_may(sentence), _split_clauses(passage)
    claim = _read_clause(sentence, sentence)
    for part in filter(None, map(content_words, PARTS.split(sentence))):
        if reason := _why_in_no_clause(part, claim, said):
            return reason
    return _why_unconnected(claim, said)


def _why_in_no_clause(part: Sequence[ContentWord], claim: "Clause", said: Iterable["Clause"]) -> str:
    """Why no clause of the passage says this part of the claim and no less; empty where one does."""
    reason = f"no clause of the passage says {' '.join(word.stem for word in part)}"
    for clause in said:
        if is_subsequence(part, clause.words):
            dropped = _find_dropped(claim, clause)
            if not dropped:
                return ""
            reason = f"it leaves out {dropped!r}"
    return reason


def _find_dropped(claim: "Clause", clause: "Clause") -> str:
    """The first word of a clause that makes less of what it says, and is missing in the claim, as is what it opens."""
    stems = {word.stem for word in claim.words}
    for word, opened in clause.opened:
        if word in CONDITIONS | RELATIVES and not ({word} - RELATIVES <= claim.tokens and opened <= stems):
            return word
    return next((hedge for hedge in clause.hedges if hedge not in claim.tokens), "")


def _why_unconnected(claim: "Clause", said: Iterable["Clause"]) -> str:
    """Why what the claim gives as a reason or condition is none in the passage; empty where each is."""
    held = [pair for clause in said for pair in clause.opened]
    for word, opened in claim.opened:
        if word not in RELATIVES and not any(word == other and opened <= stems for other, stems in held):
            return f"the passage does not say {word} {' '.join(sorted(opened))}".strip()
    return ""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a passage, or a whole claim."""

    tokens: frozenset[str]
    words: tuple[ContentWord, ...]
    opened: tuple[tuple[str, frozenset[str]], ...]  # what its conditions and reasons open: stems up to the next comma
    hedges: tuple[str, ...]


@lru_cache(maxsize=64)
def _split_clauses(passage: str) -> tuple[Clause, ...]:
    return tuple(
        _read_clause(text, _add_conditions(place, texts))
        for unit in split_units(Passage("", passage))
        for texts in [_CLAUSES.split(_name_may(unit.text))]
        for place, text in enumerate(texts)
    )


def _add_conditions(place: int, clauses: Sequence[str]) -> str:
    """A clause with those of its sentence that open with a condition."""
    return "; ".join(
        clause
        for other, clause in enumerate(clauses)
        if other == place or not CONDITIONS.isdisjoint(tokenize(clause)[:1])
    )


def _read_clause(text: str, conditions: str) -> Clause:
    """A clause; `conditions` is it with those beside it."""
    opened, hedges = tuple(_find_opened(tokenize(conditions))), tuple(_find_hedges(text))
    return Clause(frozenset(tokenize(text)), content_words(text), opened, hedges)


def _find_opened(tokens: Sequence[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for place, token in enumerate(tokens):
        after_comma = place == 0 or not tokens[place - 1][0].isalnum()
        at_once = tokens[max(0, place - 1) : place + 1] == ["at", "once"]
        if (token in CONDITIONS | REASONS and not at_once) or (token in RELATIVES and not after_comma):
            rest = tokens[place + 1 :]
            end = next((n for n, other in enumerate(rest) if not other[0].isalnum() or other == "but"), len(rest))
            stems = [word.stem for word in content_words(" ".join(rest[:end]))]
            yield token, frozenset(stems[:RELATIVE_WORDS] if token in RELATIVES else stems)


def _find_hedges(clause: str) -> Iterator[str]:
    """Hedges, and the count of what is a part of something ("two of its five engineers")."""
    tokens = tokenize(clause)
    for token, following in zip(tokens, [*tokens, ""][1:], strict=True):
        if token in HEDGES or (following == "of" and (token in FRACTIONS or token.isdigit())):
            yield token


def _name_may(text: str) -> str:
    """The month of May is not the verb."""
    return _MAY.sub("5th-month", text)
