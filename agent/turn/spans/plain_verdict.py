"""Yes or no, where one sentence decides it plainly: it has every word of the question, and no condition or hedge.

Negations, and opposites of the question's words ("closed" for "open"), turn the verdict around. In doubt: no verdict.
"""

import re
from collections.abc import Iterable, Sequence

from agent.turn.spans.question_words import CONTRASTS, Evidence, is_conditional, is_german, stem_words
from indexes.words import list_words

_NEGATION = re.compile(r"\b(?:not|no|never|neither|cannot|nobody|nothing|nicht|kein\w*|nie)\b|n['’]t\b", re.IGNORECASE)
# A restriction: what follows must be what the question asks about.
_RESTRICTION = re.compile(
    r"\b(?:in|on|at|with|without|than|for|from|to|during|before|after|between|by|under|over|since|near|of|"
    r"im|am|mit|ohne|für|von|bis|ab|vor|nach)\s+(?P<what>[^,.;]*)",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[,;:]\s|\s(?:and|but|or|und|aber|oder)\s")
_NAME = re.compile(r"(?<=\s)[A-ZÄÖÜ][\w'’-]+")


def decide_plainly(question: str, evidence: Evidence) -> str:
    """Yes or no, in the question's language; empty where the sentence does not decide plainly."""
    if is_conditional(evidence.text) or evidence.text.rstrip().endswith("?"):
        return ""
    asked = list(dict.fromkeys(stem_words(_drop_negation(question))))
    deciding = [
        clause for clause in _CLAUSES.split(evidence.text) if _has_all(asked, clause, evidence.heading, question)
    ]
    if len(asked) < 2 or len(deciding) != 1:
        return ""
    clause, turned = deciding[0], _turned(asked, deciding[0])
    negations = len(_NEGATION.findall(clause))
    if negations > 1 or _says_more(clause, asked, turned) or _names_in_another_order(question, clause):
        return ""
    is_yes = (negations + len(turned) + len(_NEGATION.findall(question))) % 2 == 0
    words = ("Ja", "Nein") if is_german(question) else ("Yes", "No")
    return words[0] if is_yes else words[1]


def _has_all(asked: Sequence[str], clause: str, heading: str, question: str) -> bool:
    """Whether a clause with its headings has every word of the question or its opposite, and itself at least one."""
    said = set(stem_words(_drop_negation(clause)))
    turned = _turned(asked, clause)
    missing = set(asked) - said - set(turned) - set(stem_words(heading))
    labels = re.findall(r"(?<=\s)[A-Z]\b", question.replace(" I ", " "))  # box A
    return not missing and bool(set(asked) & said or turned) and all(re.search(rf"\b{x}\b", clause) for x in labels)


def _turned(asked: Iterable[str], clause: str) -> list[str]:
    """The words of the question whose opposite a clause has."""
    said = set(stem_words(_drop_negation(clause)))
    return [stem for stem in asked if stem not in said and _opposites(stem) & said]


def _drop_negation(text: str) -> str:
    return _NEGATION.sub(" ", text)


def _opposites(stem: str) -> set[str]:
    """The stems of the words that mean the opposite of a stem's word."""
    found: set[str] = set()
    for pair in list_words("opposites"):
        sides = [set(stem_words(side)) for side in pair.split(":")]
        found |= {other for this, that in (sides, sides[::-1]) if stem in this for other in that - {stem}}
    return found


def _says_more(sentence: str, asked: Iterable[str], turned: Iterable[str]) -> bool:
    """Whether it speaks of one kind ("the rear tyre") or one case ("on Sundays") that the question does not name."""
    known = {*asked, *(other for stem in turned for other in _opposites(stem))}
    contrasts = set(stem_words(" ".join(CONTRASTS)))
    if any(stem in contrasts or stem.isdigit() for stem in set(stem_words(sentence)) - known):
        return True
    return any(set(stem_words(match["what"])) - known for match in _RESTRICTION.finditer(sentence))


def _names_in_another_order(question: str, sentence: str) -> bool:
    """Whether two names of the question stand in the other order: who does it and to whom may be exchanged."""
    names = _NAME.findall(question)
    places = [sentence.find(name) for name in names]
    return len(names) > 1 and -1 not in places and places != sorted(places)
