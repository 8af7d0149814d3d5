"""Ranking arguments for a question: query likelihood with Dirichlet smoothing; on demand, what is known of arguments.

Words find candidates (Tantivy's BM25), which are scored anew with the statistics of the whole collection. Query
likelihood was the organisers' baseline in both years and the core of the best runs (overviews of Touché 2020 and 2021).
Nothing that was measured on the track's own labels speaks for more, so that nothing else counts unless it is asked for.
Scores are in nats; what is added to or taken from them is in nats a word of the query, so that its length is no matter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean
from typing import Any

from agent.tasks.touche.query_likelihood import CollectionStatistics, Dirichlet
from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.ranking.rankings import RankedNumbers, sort_best_first
from indexes.text.analysis import WeightedText, extract_stems, weight_stems
from indexes.text.response_length import count_whitespace_words
from indexes.text.sentences import split_sentences
from schemas.records import Hit, Passage

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


CANDIDATES = 3000  # arguments scored anew: three times what a run may hold
JUDGED = 500  # the best of them, whose writing is looked at: about a millisecond each
MU = 2000.0  # words of smoothing: Lucene's default; not tuned here
CONCLUSION = 2  # times a conclusion's words count (docs/tracks.md has what other numbers do)
SHORT = 2.0  # nats a query word that empty premises would lose; a text of 300 words loses 0.14 by its length
QUALITY = 0.5  # nats a query word between the worst and the best writing: a tie-break, not a judge (docs/tracks.md)


@dataclass(frozen=True, slots=True)
class RankingOptions:
    """What a run ranks with beside the words: by default as the organisers' baseline does."""

    likelihood: bool = True  # Dirichlet in the place of BM25: without it nothing else counts either
    conclusion: bool = False  # the conclusion's words weigh more
    short: bool = False  # hardly an argument: pushed down
    quality: bool = False  # well written: moved up


@dataclass(frozen=True, slots=True)
class Ranker:
    """An index of arguments, what is known of the words in all of them, and how to rank."""

    index: PassageIndex
    statistics: CollectionStatistics  # of the words of every query that will be asked
    ways: RankingOptions = RankingOptions()

    def rank(self, query: Sequence[WeightedText], k: int) -> tuple[Hit, ...]:
        """The `k` best arguments for weighted texts, scores strictly decreasing."""
        if not self.ways.likelihood:
            return self.index.search(query, k)
        weights = weight_stems(query)
        numbers = [number for number, _ in self.index.rank(weights, CANDIDATES)]
        texts = self.index.read(self.index.get_ids(numbers))
        found = dict(zip(numbers, texts, strict=True))
        ranked = sort_best_first((number, self._score(weights, argument)) for number, argument in found.items())
        if self.ways.quality:
            ranked = _promote_quality(ranked, found, QUALITY * sum(weights.values()))
        return self.index.to_hits(ranked[:k])

    def _score(self, weights: Mapping[str, float], argument: Passage) -> float:
        words = boost_fields(argument, CONCLUSION if self.ways.conclusion else 1)
        pushed = SHORT * sum(weights.values()) * brevity_penalty(argument.text) if self.ways.short else 0.0
        return Dirichlet(self.statistics, MU)(weights, words) - pushed


def boost_fields(argument: Passage, times: int) -> list[str]:
    """An argument's stems, those of its conclusion `times` times."""
    return extract_stems(argument.title) * (times - 1) + extract_stems(build_searchable_text(argument))


def _promote_quality(ranked: RankedNumbers, found: Mapping[int, Passage], most: float) -> RankedNumbers:
    """The first `JUDGED` by their score and up to `most` for their writing; they stay before the others."""
    judged = ((number, score + most * argument_quality(found[number].text)) for number, score in ranked[:JUDGED])
    return [*sort_best_first(judged), *ranked[JUDGED:]]
