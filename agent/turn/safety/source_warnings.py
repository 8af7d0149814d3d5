"""Sentences of a source that warn, and what a person has that they may bear on: asthma, or a cat in the house."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from indexes.words import list_food, read_file
from schemas.records import Statement

_FORBIDDEN = (
    r"danger(?:ous|s)?|beware|hazard\w*|poison(?:ous|s)?|toxic|harmful|unsafe"
    r"|unsuitable|(?:not|n't|never)(?: \w+)? (?:suitable|safe|recommended|advised)"
    r"|(?:do not|don't|never|must not|should not|shouldn't)\b.*\b(?:if|who|with)"
    r"|(?:should|must) (?:\w+ )?avoid|avoid\b.*\bif|if\b.*\bavoid|keep (?:\w+ )+?(?:away|out of)"
    r"|fatal|deadly|lethal"
)
_FORBIDS = re.compile(rf"\b(?:{_FORBIDDEN})\b", re.IGNORECASE)
_WARNING = re.compile(
    rf"\b(?:{_FORBIDDEN}|warnings?|cautions?|careful|allergens?|allergic reactions?|at risk"
    r"|(?:consult|ask|talk to|see|speak (?:to|with))\b.*\b(?:before|if))\b",
    re.IGNORECASE,
)
_CONTENTS = re.compile(r"\bcontains?\b|\btraces of\b|\ballergens?\b", re.IGNORECASE)
_LABEL = re.compile(r"^\W*(?:may |might |can )?contains?\b|\ballergens?:|\b(?:un|not )suitable\b", re.IGNORECASE)
_HARMLESS = re.compile(
    r"\bnon-(?:toxic|poisonous|hazardous)\b|\b(?:not|n't|never) (?:toxic|poisonous|dangerous|harmful)\b|\bharmless\b",
    re.IGNORECASE,
)
# A condition that a person may have by a statement, and what a warning calls it.
_CONDITIONS = tuple(
    (re.compile(rf"\b(?:{has})", re.IGNORECASE), re.compile(rf"\b(?:{named})", re.IGNORECASE))
    for has, named in read_file("food")["conditions"]["pairs"]
)
# A medicine: "I take warfarin". Whatever else is taken, no warning speaks of taking it.
_TAKES = re.compile(r"\b(?:take|takes|taking|am on|'m on|is on|prescribed) (?P<what>[a-z]{5,})\b", re.IGNORECASE)
_HAS_NOT = re.compile(r"\b(?:not|no|never|used to|no longer|hates?|dislikes?)\b|n't\b", re.IGNORECASE)


def is_warning(text: str) -> bool:
    """Whether a sentence warns of something."""
    return bool(_WARNING.search(_drop_harmless(text))) and not text.rstrip().endswith("?")


def forbids(text: str) -> bool:
    """Whether a sentence warns of something outright, not only to ask a doctor first."""
    return is_warning(text) and bool(_FORBIDS.search(_drop_harmless(text)))


def _drop_harmless(text: str) -> str:
    return _HARMLESS.sub(" ", text.replace("’", "'"))


def lists_contents(text: str) -> bool:
    """Whether a sentence says what something contains."""
    return bool(_CONTENTS.search(text)) and not text.rstrip().endswith("?")


def is_label(text: str) -> bool:
    """Whether a sentence reads as the label of a food does: "Contains celery."."""
    return bool(_LABEL.search(text)) and not text.rstrip().endswith("?")


@dataclass(frozen=True, slots=True)
class Condition:
    """What warnings call a condition that a person has by a statement."""

    statement: Statement
    named: re.Pattern[str]
    is_must: bool = True  # as of an avoidance


def find_conditions(statement: Statement) -> Iterator[Condition]:
    """The conditions that a person has by a statement, save those that it denies."""
    text = statement.text.replace("’", "'")
    for has, named in _CONDITIONS:
        if (found := has.search(text)) and not _HAS_NOT.search(text[: found.start()]):
            yield Condition(statement, named)
    if (taken := _TAKES.search(text)) and not _HAS_NOT.search(text[: taken.start()]):
        yield Condition(
            statement, re.compile(rf"\b(?:tak\w+|us(?:e|ing)|with|on) (?:\w+ )?{_also_called(taken['what'])}", re.I)
        )


def _also_called(medicine: str) -> str:
    """A medicine, or the kind that it is of: simvastatin is a statin."""
    kinds = (name for name, members in list_food("kinds").items() if medicine.lower() in members)
    return rf"(?:{'|'.join(map(re.escape, dict.fromkeys((medicine, *kinds))))})s?\b"
