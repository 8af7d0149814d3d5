"""What a person says about themselves while asking, and whether it is in a language that can be read."""

import re

from agent.sentences import split_sentences
from indexes.words import stems

_OF_ONESELF = re.compile(r"(?:i|i'm|i've|my|we|we're|our)\b", re.IGNORECASE)
_NO_FACT = re.compile(
    r"(?:i|we)\b(?:'d|'m| would| do| am| was)? ?(?:want|need|like to know|wonder(?:ing)?|think|guess|mean|see"
    r"|understand|agree|hope|asking|looking|asked|said)\b",
    re.IGNORECASE,
)
FEW = 3  # words, below which nothing is said of anybody, and no language can be told


def said_of_oneself(utterance: str) -> tuple[str, ...]:
    """Sentences in which the person says what they are, have or like; no questions, no wishes to know."""
    found = []
    for sentence in split_sentences(utterance.replace("’", "'")):
        about = _OF_ONESELF.match(sentence) and not _NO_FACT.match(sentence)
        if about and not sentence.endswith("?") and len(sentence.split()) >= FEW:
            found.append(sentence)
    return tuple(found)


def looks_english(text: str) -> bool:
    """Whether some word is a stop word of English, or there are too few to tell."""
    words = re.findall(r"[^\W\d_]+", text)
    return len(words) <= FEW or len(stems(" ".join(words))) < len(words)
