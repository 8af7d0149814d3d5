"""Whether a sentence in a model's own words keeps what limits the passage's: conditions, hedges and reasons.

An excerpt may still mislead: "The tenant may keep a dog" of "... only with written permission", "It opened in spring"
of "It is expected to open in spring", or a reason that was turned around. `tests/cases/support_pairs_2.jsonl` has
cases; the rules were found by them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent.turn.attribution import (
    DIGITS,
    PARTS,
    ContentWord,
    content_words,
    is_excerpt,
    is_subsequence,
    tokenize,
    why_unsupported,
)
from indexes.text.units import split_units
from indexes.words import list_words
from schemas.records import Passage

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
    claim = _find_segments(sentence)
    for part in filter(None, map(content_words, PARTS.split(sentence))):
        if reason := _why_in_no_clause(part, claim, said):
            return reason
    return _why_unconnected(claim, said)


def _why_in_no_clause(part: Sequence[ContentWord], claim: "Segments", said: Iterable["Clause"]) -> str:
    """Why no clause of the passage says this part of the claim and no less; empty where one does."""
    reason = f"no clause of the passage says {' '.join(word.stem for word in part)}"
    for clause in said:
        if is_subsequence(part, clause.words):
            dropped = _find_dropped(claim, clause)
            if not dropped:
                return ""
            reason = f"it leaves out {dropped!r}"
    return reason


def _find_dropped(claim: "Segments", clause: "Clause") -> str:
    """The first word of a clause that makes less of what it says, and is missing in the claim, as is what it opens."""
    for word, opened in clause.conditions.opened:
        if word in CONDITIONS | RELATIVES and not ({word} - RELATIVES <= claim.tokens and opened <= claim.stems):
            return word
    return next((hedge for hedge in clause.hedges if hedge not in claim.tokens), "")


def _why_unconnected(claim: "Segments", said: Iterable["Clause"]) -> str:
    """Why what the claim gives as a reason or condition is none in the passage; empty where each is."""
    held = [pair for clause in said for pair in clause.conditions.opened]
    for word, opened in claim.opened:
        if word not in RELATIVES and not any(word == other and opened <= stems for other, stems in held):
            return f"the passage does not say {word} {' '.join(sorted(opened))}".strip()
    return ""


@dataclass(frozen=True, slots=True)
class Segments:
    """The words of a text, and what its conditions and reasons open: stems up to the next comma."""

    tokens: frozenset[str]
    stems: frozenset[str]
    opened: tuple[tuple[str, frozenset[str]], ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a passage: its words, its conditions with those beside it, and its hedges."""

    words: tuple[ContentWord, ...]
    conditions: Segments
    hedges: tuple[str, ...]


@lru_cache(maxsize=64)
def _split_clauses(passage: str) -> tuple[Clause, ...]:
    return tuple(
        Clause(content_words(text), _find_segments(_add_conditions(place, texts)), tuple(_find_hedges(text)))
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


def _find_segments(text: str) -> Segments:
    tokens = tokenize(text)
    opened = []
    for place, token in enumerate(tokens):
        after_comma = place == 0 or not tokens[place - 1][0].isalnum()
        at_once = tokens[max(0, place - 1) : place + 1] == ["at", "once"]
        if (token in CONDITIONS | REASONS and not at_once) or (token in RELATIVES and not after_comma):
            rest = tokens[place + 1 :]
            end = next((n for n, other in enumerate(rest) if not other[0].isalnum() or other == "but"), len(rest))
            stems = [word.stem for word in content_words(" ".join(rest[:end]))]
            opened.append((token, frozenset(stems[:RELATIVE_WORDS] if token in RELATIVES else stems)))
    return Segments(frozenset(tokens), frozenset(word.stem for word in content_words(text)), tuple(opened))


def _find_hedges(clause: str) -> Iterator[str]:
    """Hedges, and the count of what is a part of something ("two of its five engineers")."""
    tokens = tokenize(clause)
    for token, following in zip(tokens, [*tokens, ""][1:], strict=True):
        if token in HEDGES or (following == "of" and (token in FRACTIONS or token.isdigit())):
            yield token


def _name_may(text: str) -> str:
    """The month of May is not the verb."""
    return _MAY.sub("5th-month", text)
