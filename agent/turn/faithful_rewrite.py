"""Whether a rewrite asks what the utterance asks: a small model drops words at times, or brings in others."""

import re

from agent.turn.attribution import NEGATIONS
from agent.turn.spans.names import find_codes, find_names
from indexes.text.analysis import extract_stems
from schemas.records import Query

MAX_OWN_WORDS = 1  # that the conversation does not have: "the price" for "how much"
WORD = re.compile(r"[a-z]+(?:n['’]t)?")


def is_faithful(rewrite: str, query: Query) -> bool:
    """Whether a rewrite keeps the numbers, names and negations of the utterance, and invents nothing.

    Its numbers and names must be of the conversation, as far as the query has it, and of its other words all but one.
    """
    said = " ".join((query.utterance, query.previous_reply, *query.earlier_utterances))
    kept = find_codes(query.utterance) <= find_codes(rewrite) and find_names(query.utterance) <= _find_stems(rewrite)
    own = _find_stems(rewrite) - _find_stems(said)
    invented = (find_codes(rewrite) - find_codes(said)) | (find_names(rewrite) & own)
    return bool(
        kept and not invented and len(own) <= MAX_OWN_WORDS and is_negated(query.utterance) == is_negated(rewrite)
    )


def is_negated(text: str) -> bool:
    """Whether a text denies something."""
    return any(word in NEGATIONS or word.endswith(("n't", "n’t")) for word in WORD.findall(text.lower()))


def _find_stems(text: str) -> frozenset[str]:
    return frozenset(extract_stems(text))
