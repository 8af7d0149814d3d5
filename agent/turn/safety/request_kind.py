"""Whether a person asks for something to have or do, or for a fact: a fact is told, whatever they must avoid."""

import re
from collections.abc import Sequence
from typing import Literal

from agent.turn.safety.avoidance import split_told
from indexes.text.sentences import split_sentences

RequestKind = Literal["recommendation", "fact", "unsure"]
MAX_ELLIPTICAL_WORDS = 5  # "And tomorrow?" goes on with what was asked for before

_PLAIN_FACT = re.compile(
    r"^\W*(?:and |but |so )?"
    r"(?:how (?:much|many|long|old|far|hot|big|large|often|late|early|high|deep|expensive)|when|who|whose|where is|why"
    r"|(?:how )?(?:does|do|did|is|are|was|were|has|have) (?:the|this|that|it|its|they|these|those)\b)\b|\bavoid\b",
    re.IGNORECASE,
)
# "Is the satay safe for me?" asks for a judgement, not for a fact.
_FOR_ONESELF = re.compile(
    r"\b(?:safe|ok(?:ay)?|fine|suitable|all ?right|good|bad|dangerous|harmful|risky)\b[^?]*"
    r"\bfor (?:me|us|my \w+|our \w+)\b"
    r"|\b(?:contain|have|has|include|is there|are there)s?\b[^?]*\b(?:anything|something|things?|what)\b[^?]*"
    r"\b(?:i|we) (?:must|should|have to|need to|can|may|am|are)\b"
    r"|\b(?:is|are)\b[^?]*\b(?:safe|ok(?:ay)?|suitable|all ?right)(?: to (?:eat|drink|have|take|try))?\s*\?*$",
    re.IGNORECASE,
)
_RECOMMENDATION = re.compile(
    r"\b(?:recommend\w*|suggest\w*|advice|advise|ideas?|options?|alternatives?|substitutes?|what to"
    r"|(?:should|could|can|may|shall|might) (?:i|we|one|my \w+|he|she|they)"
    r"|recipes?|dinner|lunch|breakfast|brunch|supper|snacks?|dish(?:es)?|meals?|menus?|desserts?|hungry|restaurants?"
    r"|(?:something|anything) (?:to|for|else|nice|good|tasty|quick|easy|sweet|savoury|healthy)"
    r"|(?:what|which|any|some)\b[^?]*\b(?:best|good|healthy|suitable|safe|nice|tasty|quick|easy|else)"
    r"|looking for|i(?:'d| would) like|i want|i need|give me|find me|help me (?:find|choose|pick|plan)|another"
    r"|which (?:of|ones?)|(?:what|how) about|instead of|in place of|replac\w+)\b",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"^\W*(?:and |but |so |ok(?:ay)?,? |thanks[,!.]? )?"
    r"(?:(?:what|which)(?:'s| is| are| was| were)? (?:the|in|a|an)|what (?:does|do|did)|(?:please )?(?:tell|remind) me"
    r"|(?:can|could|would) you (?:please )?(?:tell|explain|describe|compare|elaborate)|explain|describe|compare|define"
    r"|let's talk)\b",
    re.IGNORECASE,
)


def classify_request(utterances: Sequence[str]) -> RequestKind:
    """What the last of a person's utterances asks for; a very short one asks for what the one before it does."""
    for utterance in reversed(utterances):
        asked = split_told(utterance)[1]
        kind = _classify(asked)
        if kind != "unsure" or len(asked.split()) > MAX_ELLIPTICAL_WORDS:
            return kind
    return "unsure"


def _classify(asked: str) -> RequestKind:
    """By the last of the sentences that tells."""
    for sentence in reversed(split_sentences(asked)):
        if _FOR_ONESELF.search(sentence):
            return "recommendation"
        if _PLAIN_FACT.search(sentence):
            return "fact"
        if _RECOMMENDATION.search(sentence):
            return "recommendation"
        if _FACT.search(sentence):
            return "fact"
    return "unsure"
