"""Finds what somebody says about themselves in a question. It is remembered only if they agree."""

import re
from collections.abc import Iterable, Iterator

from indexes.text.sentences import split_sentences
from schemas.records import Statement

MAX_CHARACTERS = 200  # characters of a statement
_PARTS = re.compile(
    r"\s*[,;:–—]\s+(?:and\s+|but\s+|so\s+)?|\s+-\s+|\s+(?:so|but)\s+(?=(?:what|which|how|where|when|who|can|could|should|is|are|do|does)\b)"
)
_OPENING = re.compile(r"^(?:and|but|so|well|hi|hello|as|since|because|given that|also)\s+", re.IGNORECASE)
_WISHES = (
    "d like|would like|wonder|m wondering|am wondering|was wondering|want|need to know|m looking|am looking|think|guess"
    "|mean|see|understand|agree|hope|asked|said|question"
)
_ONESELF = re.compile(rf"^(?:I|we|my|our)\b(?!['’\s]+(?:{_WISHES})\b)", re.IGNORECASE)


def find_self_disclosures(utterance: str, known: Iterable[Statement] = ()) -> tuple[str, ...]:
    """The statements about the person in an utterance, as sentences, without those that are known already."""
    known_texts = {statement.text.casefold() for statement in known}
    return tuple(text for text in dict.fromkeys(_find_statements(utterance)) if text.casefold() not in known_texts)


def _find_statements(utterance: str) -> Iterator[str]:
    for sentence in split_sentences(utterance):
        parts = [sentence] if _is_about_oneself(sentence) else _PARTS.split(sentence)
        for part in parts:
            statement = _OPENING.sub("", part)
            if _is_about_oneself(statement):
                yield f"{statement[0].upper()}{statement[1:].rstrip(' .!')}."


def _is_about_oneself(text: str) -> bool:
    return (
        bool(_ONESELF.match(text)) and not text.endswith("?") and len(text.split()) > 1 and len(text) <= MAX_CHARACTERS
    )
