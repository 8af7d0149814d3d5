"""Whether a sentence has what a kind of question asks for: an amount for "how much", a cause for "why"."""

import re

from agent.turn.question_kinds import QuestionKind
from agent.turn.spans.amounts_and_dates import DIGITS, SPELLED
from agent.turn.spans.answer_spans import drop_column_names, find_spans
from agent.turn.spans.question_words import stem_words

_FOUND_BY_SPANS = frozenset({"number", "money", "date", "duration", "place", "person", "code"})
_ANY_DATE, _DURATION = QuestionKind("date"), QuestionKind("duration")  # "When?" "Within six months."
_ANY_NUMBER = QuestionKind("number")
_NUMBER = re.compile(rf"\b(?:{DIGITS}|{SPELLED})\b", re.IGNORECASE)
_CAUSE = re.compile(
    r"\b(?:because|since|due to|caus(?:e|es|ed|ing)|reasons?|why|so that|owing to|thanks to|that is why|therefore|"
    r"led to|results? (?:in|from)|weil|wegen|deshalb|daher|denn|grund|gründe|ursache)\b",
    re.IGNORECASE,
)
_PERMISSION = re.compile(
    r"^(?:Not|Never|No|Only|Do not|Don['’]t|Nicht|Nie|Kein\w*|Nur|Allowed|Forbidden|Permitted|Verboten|Erlaubt)\b"
)
_DEFINITION = re.compile(
    r"^(?:(?:an?|the|eine?|der|die|das) )?(?:[\w'’“”\"-]+ ){1,4}?"
    r"(?:is|are|means?|refers? to|stands? for|ist|sind|bedeutet|heißt)\b",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"^(?:To \w+|First|Then|Next|If \w|When \w|Do not|Don['’]t|Never|Always|Please|(?:Press|Open|Turn|Call|Ring"
    r"|Put|Take|Close|Switch|Pull|Push|Hold|Set|Check|Stop|Add|Remove|Keep|Clean|Report|Register|Use|Mix|Bake|Cook|Stir|Fill"
    r"|Wait|Send|Write|Ask|Bring|Go|Leave|Let|Make|Give|Cut|Wash|Dry|Start|Restart|Reset|Enter|Choose|Click|Drücken|Öffnen|Rufen)\b)"
    r"|\b(?:you (?:can|should|must|have to|need to|may)|what to do)\b|\bSie (?:müssen|können|sollen)\b"
)


def has_kind(kind: QuestionKind, sentence: str, heading: str) -> bool:
    """Whether a sentence could answer a question of a kind; a heading "Why" tells causes. False for other kinds."""
    if kind == _ANY_NUMBER:  # "How much do I feed her?"
        return bool(_NUMBER.search(sentence))
    if _is_labelled(kind, drop_column_names(sentence)):
        return True
    if kind.name in _FOUND_BY_SPANS:
        return bool(find_spans(kind, sentence)) or (kind == _ANY_DATE and bool(find_spans(_DURATION, sentence)))
    if kind.name == "how-to":
        return bool(_INSTRUCTION.search(sentence))
    if kind.name == "definition":
        return bool(_DEFINITION.match(sentence))
    if kind.name == "yes-no":
        return kind.noun == "permission" and bool(_PERMISSION.search(sentence))
    return kind.name == "reason" and bool(_CAUSE.search(f"{heading}: {sentence}"))


def _is_labelled(kind: QuestionKind, sentence: str) -> bool:
    """Whether a number stands behind a label that names what is counted: "Data volume: 25 GB a month."."""
    label, _, value = sentence.partition(": ")
    asked = set(stem_words(kind.noun)) if kind.name == "number" else set[str]()
    return bool(asked and asked <= set(stem_words(label)) and _NUMBER.search(value))
