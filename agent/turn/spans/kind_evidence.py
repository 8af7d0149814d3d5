"""Whether a sentence has what a kind of question asks for: an amount for "how much", a cause for "why"."""

import re

from agent.turn.question_kinds import QuestionKind
from agent.turn.spans.answer_spans import find_spans

_FOUND_BY_SPANS = frozenset({"number", "money", "date", "duration", "place", "person", "code"})
_CAUSE = re.compile(
    r"\b(?:because|since|due to|caus(?:e|es|ed|ing)|reasons?|why|so that|owing to|thanks to|that is why|therefore|"
    r"led to|results? (?:in|from)|weil|wegen|deshalb|daher|denn|grund|gründe|ursache)\b",
    re.IGNORECASE,
)


def has_kind(kind: QuestionKind, sentence: str, heading: str) -> bool:
    """Whether a sentence could answer a question of a kind; a heading "Why" tells causes. False for other kinds."""
    if kind.name in _FOUND_BY_SPANS:
        return bool(find_spans(kind, sentence))
    return kind.name == "reason" and bool(_CAUSE.search(f"{heading}: {sentence}"))
