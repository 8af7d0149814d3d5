"""Sentences of a source that warn, and what a person has that they may bear on: asthma, or a cat in the house."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.records import Statement

_WARNING = re.compile(
    r"\b(?:warnings?|danger(?:ous|s)?|cautions?|beware|careful|allergens?|hazard\w*|poison(?:ous|s)?|toxic|harmful|unsafe"
    r"|(?:not|n't|never|un) ?(?:suitable|safe|recommended|advised)|(?:may )?contains?|traces of|allergic reactions?"
    r"|(?:do not|don't|never|must not|should not|shouldn't)\b.*\b(?:if|who|with)|avoid\w*|keep \w+ (?:away|out)"
    r"|(?:consult|ask|talk to|see|speak (?:to|with))\b.*\b(?:before|if)|at risk|risk of|fatal|deadly|lethal)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\bnon-(?:toxic|poisonous|hazardous)\b|\b(?:not|n't|never) (?:toxic|poisonous|dangerous|harmful)\b|\bharmless\b",
    re.IGNORECASE,
)
# A condition that a person may have by a statement, and what a warning calls it.
_CONDITIONS = tuple(
    (re.compile(rf"\b(?:{has})", re.IGNORECASE), re.compile(rf"\b(?:{named})", re.IGNORECASE))
    for has, named in (  # a person, a warning
        ("allergic|allerg(?:y|ies)", r"allergies\b(?! to)|allergic (?:people|reactions?)|allergy sufferers|people with an allergy\b(?! to)"),
        (r"pregnan|expecting (?:a|our|my) (?:\w+ )?(?:baby|child)", "pregnan|expecting mothers|unborn"),
        ("breastfe|breast-fe|nursing", "breastfe|breast-fe|nursing mothers|lactating"),
        ("asthma", "asthma"),
        ("diabet", "diabet"),
        ("epilep", "epilep|seizure"),
        ("high blood pressure|hypertens", "blood pressure|hypertens"),
        ("heart (?:problem|disease|condition|failure)|pacemaker", "heart (?:problem|disease|condition|failure)|pacemaker"),
        ("kidney", "kidney"),
        (r"cats?\b|kittens?\b", r"cats?\b|pets?\b|kittens?\b"),
        (r"dogs?\b|pupp(?:y|ies)\b|golden retriever", r"dogs?\b|pets?\b|pupp(?:y|ies)\b"),
        (r"rabbits?\b", r"rabbits?\b|pets?\b"),
    )
)  # fmt: skip
_HAS_NOT = re.compile(r"\b(?:not|no|never|used to|no longer|hates?|dislikes?)\b|n't\b", re.IGNORECASE)


def is_warning(text: str) -> bool:
    """Whether a sentence warns, or says what something contains."""
    return bool(_WARNING.search(_HARMLESS.sub(" ", text.replace("’", "'")))) and not text.rstrip().endswith("?")


@dataclass(frozen=True, slots=True)
class Condition:
    """What warnings call a condition that a person has by a statement."""

    statement: Statement
    named: re.Pattern[str]


def find_conditions(statement: Statement) -> Iterator[Condition]:
    """The conditions that a person has by a statement, save those that it denies."""
    text = statement.text.replace("’", "'")
    for has, named in _CONDITIONS:
        if (found := has.search(text)) and not _HAS_NOT.search(text[: found.start()]):
            yield Condition(statement, named)
