"""What an utterance asks for, a recommendation or a fact, and which needs that lets rule something out."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agent.turn.safety.needs import Need, content_stems, find_stems, split_told
from indexes.text.sentences import split_sentences
from indexes.words import compile_any

RequestKind = Literal["recommendation", "fact", "unsure"]
MAX_ELLIPTICAL_WORDS = 5  # "And tomorrow?" goes on with what was asked for before
# The first that fits tells. "Is the satay safe for me?" asks for a judgement, not for a fact.
_KINDS: tuple[tuple[re.Pattern[str], RequestKind], ...] = (
    (compile_any("requests.judgement"), "recommendation"),
    (compile_any("requests.plain_fact"), "fact"),
    (compile_any("requests.recommendation"), "recommendation"),
    (compile_any("requests.fact"), "fact"),
)
_ASKS_LEAVE = compile_any("requests.leave")
INSTEAD = compile_any("requests.instead")


def classify_request(utterances: Sequence[str]) -> RequestKind:
    """What the last of a person's utterances asks for; a very short one asks for what the one before it does."""
    for utterance in reversed(utterances):
        asked = split_told(utterance)[1]
        sentences = reversed(split_sentences(asked))  # the last that tells
        kinds = (kind for sentence in sentences for pattern, kind in _KINDS if pattern.search(sentence))
        if (kind := next(kinds, None)) or len(asked.split()) > MAX_ELLIPTICAL_WORDS:
            return kind or "unsure"
    return "unsure"


def choose_bearing(needs: Sequence[Need], utterances: Sequence[str]) -> tuple[list[Need], list[Need]]:
    """What rules something out of this answer, and what is only to be noted of it; neither what the question names.

    Where a fact is asked for, nothing is ruled out, and what is avoided for health is noted; it is ruled out where that
    is unsure.
    """
    if not utterances:
        return [], []
    kind = classify_request(utterances)
    bearing = [each for each in needs if kind == "recommendation" or each.severity == "health"]
    avoided = drop_asked_about([each for each in bearing if each.severity != "condition"], utterances[-1])
    conditions = [each for each in bearing if each.severity == "condition"]
    return ([], avoided) if kind == "fact" else ([*avoided, *conditions], [])


def drop_asked_about(needs: Sequence[Need], utterance: str) -> list[Need]:
    """The needs without the things that the utterance itself asks for; all where it asks whether one may."""
    question = split_told(utterance)[1]
    if _ASKS_LEAVE.match(question):
        return list(needs)
    asked = find_stems(INSTEAD.sub(" ", question))
    replaced = content_stems(" ".join(found[0] for found in INSTEAD.finditer(question)))
    left = (
        replace(each, things=tuple(thing for thing in each.things if not thing <= asked), replaced=replaced)
        for each in needs
    )
    return [each for each in left if each.things]
