"""What of a rewrite can be used: a small model drops sentences or words at times, or brings in others."""

import re

from agent.turn.attribution import NEGATIONS
from agent.turn.spans.names import find_codes, find_names
from indexes.text.analysis import extract_stems
from indexes.text.sentences import split_sentences
from schemas.records import Query

MAX_OWN_WORDS = 1  # that the conversation does not have: "the price" for "how much"
WORD = re.compile(r"[a-z]+(?:n['’]t)?")


def complete_rewrite(rewrite: str, query: Query) -> str:
    """The rewrite after the sentences of the utterance that it drops; empty where it asks something else."""
    sentences = split_sentences(query.utterance)
    said = frozenset(extract_stems(rewrite))
    dropped = [sentence for sentence in sentences if not _is_kept(sentence, said)]
    whole = " ".join([*dropped, rewrite])
    asks_another = not rewrite or (dropped and len(sentences) == 1)
    return whole if not asks_another and is_faithful(whole, query) else ""


def _is_kept(sentence: str, said: frozenset[str]) -> bool:
    """Whether at least half of the words of a sentence were said."""
    stems = frozenset(extract_stems(sentence))
    return 2 * len(stems & said) >= len(stems)


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
