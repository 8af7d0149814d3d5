"""How well an argument is written, as far as a program can tell without understanding it.

The assessors of 2021 judged rhetorical quality by style of speech, sentence structure, profanity and typos (the page of
the task, Touché 2021). Each part here is a share from 0 to 1, higher is better; they count alike, no weight is learned.
"""

import re
from functools import cache
from statistics import mean
from typing import Any

from agent.tracks.response_length import count_whitespace_words
from indexes.text.sentences import split_sentences

MIN_WORDS = 25  # words of premises below which a text is hardly an argument ("I agree with my opponent.")
PARAGRAPH = 150  # words from which length says no more: about a paragraph
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


def brevity_penalty(text: str) -> float:
    """How much premises lack to be long enough for an argument: 1 where there are none, 0 from `MIN_WORDS` words on."""
    return max(0.0, 1 - count_whitespace_words(text) / MIN_WORDS)


def argument_quality(text: str) -> float:
    """How well premises are written, from 0 to 1: the mean of four shares."""
    return mean((length_score(text), structure_score(text), decency_score(text), spelling_score(text)))


def length_score(text: str) -> float:
    """Words, up to `PARAGRAPH`."""
    return min(1.0, count_whitespace_words(text) / PARAGRAPH)


def structure_score(text: str) -> float:
    """The share of sentences that begin with a capital or a digit, end with a mark, and are of a readable length."""
    sentences = split_sentences(text)
    return sum(map(_is_well_formed, sentences)) / len(sentences) if sentences else 0.0


def decency_score(text: str) -> float:
    """1 where nothing is profane or shouted (five capitals or more, marks in a row), and less with each that is."""
    return max(0.0, 1 - (len(PROFANE.findall(text)) + len(SHOUTED.findall(text))) / OFFENCES)


def spelling_score(text: str) -> float:
    """1 where an English word list knows all words, save names (capitals), and less with the share that it lacks."""
    words = [word.replace("’", "'") for word in WORD.findall(text) if word.islower()]
    unknown = sum(word not in _known_words() for word in words)
    return max(0.0, 1 - TYPOS * unknown / len(words)) if words else 1.0


def _is_well_formed(sentence: str) -> bool:
    begun = sentence[0].isupper() or sentence[0].isdigit() or not sentence[0].isalnum()
    return begun and sentence[-1] in ".!?:\"'”’)" and count_whitespace_words(sentence) in READABLE


@cache
def _known_words() -> Any:
    """A list of English words by their frequency."""
    from spellchecker import SpellChecker

    return SpellChecker()
