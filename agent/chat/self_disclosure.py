"""Finds lasting facts that somebody says about themselves in a question. They are remembered only if the person agrees.

Lasting are allergies, diets, illnesses, pets, family, home, work, possessions, likings and abilities. What is
not surely one of these is not offered: `/about-me add` takes anything.
"""

import re
from collections.abc import Iterable, Iterator

from indexes.text.sentences import split_sentences
from indexes.words import match_any
from schemas.records import Statement

MAX_CHARACTERS = 200  # characters of a statement
_PARTS = re.compile(r"\s*[,;:–—]\s+(?:and\s+|but\s+|so\s+)?")
_OPENING = re.compile(r"^(?:(?:and|but|so|well|hi|hello|as|since|because|also)\s+)+", re.IGNORECASE)
_FAMILY, _BEING, _DOING, _HAVING, _BELONGINGS, _TIMES = (
    match_any(f"about_oneself.{name}") for name in ("family", "being", "doing", "having", "belongings", "times")
)
_SOME = rf"(?:an?|one|two|three|four|five|\d+) (?:\w+ )?(?:{_FAMILY}|sons|daughters|{_BELONGINGS})"
_LASTING = re.compile(
    rf"(?:i|we)(?: am|'m| are|'re) (?:also |both )?(?:{_BEING})\b.*"
    rf"|(?:i|we)(?: have|'ve got) (?:{_HAVING}|{_SOME})\b.*"
    rf"|(?:i|we) (?:also |always |never |only )?(?:{_DOING})\b(?! (?:it|that|this|them|your|getting|the)\b).*"
    rf"|(?:my|our) (?:name|budget|home|house|{_BELONGINGS}|{_FAMILY})(?: \w+)?"
    r" (?:is|are|has|have|lives?|needs?|faces|plays?)\b.*",
    re.IGNORECASE,
)
_PASSING = re.compile(rf"\b(?:{_TIMES})\b", re.IGNORECASE)


def find_self_disclosures(utterance: str, known: Iterable[Statement] = ()) -> tuple[str, ...]:
    """The lasting facts about the person in an utterance, as sentences, without those that are known already."""
    known_texts = {statement.text.casefold() for statement in known}
    return tuple(text for text in dict.fromkeys(_find_statements(utterance)) if text.casefold() not in known_texts)


def _find_statements(utterance: str) -> Iterator[str]:
    for sentence in split_sentences(utterance):
        parts = [sentence] if _is_lasting(sentence) else _PARTS.split(sentence)
        for statement in (_OPENING.sub("", part) for part in parts):
            if _is_lasting(statement):
                yield f"{statement[0].upper()}{statement[1:].rstrip(' .!')}."


def _is_lasting(text: str) -> bool:
    """Whether a text is about oneself, and will still be true in another conversation."""
    plain = text.replace("’", "'").rstrip(" .!")
    is_short = len(text) <= MAX_CHARACTERS and not text.endswith("?")
    return is_short and bool(_LASTING.fullmatch(plain)) and not _PASSING.search(plain)
