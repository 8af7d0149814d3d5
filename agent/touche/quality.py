"""How well an argument is written, as far as it can be seen without understanding it.

The assessors of 2021 judged rhetorical quality by style of speech, sentence structure, profanity and typos (the page of
the task, Touché 2021). Each part here is a share from 0 to 1, higher is better; they count alike, no weight is learned.
"""

import re
from functools import cache
from statistics import mean
from typing import Any

from agent.sentences import split_sentences, whitespace_words

ENOUGH = 25  # words of premises below which a text is hardly an argument ("I agree with my opponent.")
LONG = 150  # words from which length says no more: about a paragraph
READABLE = range(4, 46)  # words of a sentence that is neither a shout nor a run-on
TYPOS = 5  # times the share of unknown words counts: one in five and nothing is left
OFFENCES = 3  # profane or shouted words after which nothing is left
PROFANE = re.compile(
    r"\b(?:arse|ass(?:es|holes?)?|bastards?|bitch(?:es)?|bollocks|bullshit|crap|cunt|damn(?:ed)?|dick(?:head)?|dumbass|"
    r"(?:mother)?fuck(?:ed|ers?|ing)?|goddamn|idiots?|morons?|piss(?:ed)?|prick|retard(?:ed|s)?|screw|shit(?:ty)?|slut|"
    r"stfu|wankers?|whore|wtf)\b",
    re.IGNORECASE,
)
SHOUTED = re.compile(r"\b[A-Z]{5,}\b|[!?]{2,}")
WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*")


def shortness(text: str) -> float:
    """How much premises lack to be long enough for an argument: 1 where there are none, 0 from `ENOUGH` words on."""
    return max(0.0, 1 - whitespace_words(text) / ENOUGH)


def quality(text: str) -> float:
    """How well premises are written, from 0 to 1: the mean of four shares."""
    return mean((length(text), structure(text), decency(text), spelling(text)))


def length(text: str) -> float:
    """Words, up to `LONG`."""
    return min(1.0, whitespace_words(text) / LONG)


def structure(text: str) -> float:
    """The share of sentences that begin with a capital or a digit, end with a mark, and are of a readable length."""
    sentences = split_sentences(text)
    return sum(map(_well_built, sentences)) / len(sentences) if sentences else 0.0


def decency(text: str) -> float:
    """1 where nothing is profane or shouted (five capitals or more, marks in a row), and less with each that is."""
    return max(0.0, 1 - (len(PROFANE.findall(text)) + len(SHOUTED.findall(text))) / OFFENCES)


def spelling(text: str) -> float:
    """1 where an English word list knows all words, save names (capitals), and less with the share that it lacks."""
    words = [word.replace("’", "'") for word in WORD.findall(text) if word.islower()]
    unknown = sum(word not in _known() for word in words)
    return max(0.0, 1 - TYPOS * unknown / len(words)) if words else 1.0


def _well_built(sentence: str) -> bool:
    begun = sentence[0].isupper() or sentence[0].isdigit() or not sentence[0].isalnum()
    return begun and sentence[-1] in ".!?:\"'”’)" and whitespace_words(sentence) in READABLE


@cache
def _known() -> Any:
    """A list of English words by their frequency."""
    from spellchecker import SpellChecker

    return SpellChecker()
