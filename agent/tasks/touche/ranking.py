"""Ranking arguments for a question: query likelihood with Dirichlet smoothing; on demand, what is known of arguments.

Words find candidates (Tantivy's BM25), which are scored anew with the statistics of the whole collection. Query
likelihood was the organisers' baseline in both years and the core of the best runs (overviews of Touché 2020 and 2021).
Nothing that was measured on the track's own labels speaks for more, so that nothing else counts unless it is asked for.
Scores are in nats; what is added to or taken from them is in nats a word of the query, so that its length is no matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.tasks.touche.argument_quality import argument_quality, brevity_penalty
from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.ranking.rankings import RankedNumbers, sort_best_first
from indexes.ranking.scorers import CollectionStatistics, Dirichlet
from indexes.text.analysis import WeightedText, extract_stems, weight_stems
from schemas.records import Hit, Passage

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
