"""Finding passages by their words and by their meaning.

Words are BM25 over the whole index. Meaning is the cosine with what is looked for: of every passage where the vectors
of all are there, else of the first hundred that the words find.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.passages import DECIMALS, PassageIndex, Ranked, Weighted, weighted, whole_text
from indexes.statistics import Score
from indexes.vectors import Embed, Vectors, direction
from indexes.words import stems
from schemas.records import Hit, Passage

COSINE = 4.0  # what the cosine weighs beside the words, whose best passage has 1 (docs/log.md)
RERANKED = 100  # passages whose meaning is looked at where not all vectors are there
DEPTH = 1000  # passages found by words that meaning may move up, however few are asked for


@dataclass(frozen=True, slots=True)
class Finder:
    """An index, and what turns texts into vectors where there is a model that can. Without one, words alone count."""

    index: PassageIndex
    embed: Embed | None = None
    vectors: Vectors | None = None  # of every passage, by its number
    score: Score | None = None  # in the place of Tantivy's BM25

    def find(self, words: Sequence[Weighted], meaning: Sequence[Weighted], k: int) -> tuple[Hit, ...]:
        """The `k` best passages, scores strictly decreasing.

        `words` and `meaning` are texts with their weights: what a text's words weigh, and what its vector weighs in
        the sum that is compared with those of passages.
        """
        wanted = self.embed is not None and any(text.strip() for text, _ in meaning)
        ranked = self._by_words(words, max(k, DEPTH) if wanted else k)
        if self.embed is not None and wanted:
            ranked = self._with_meaning(ranked, direction(self.embed, meaning), self.embed)
        return self.index.hits(ranked[:k])

    def read(self, ids: Sequence[str]) -> tuple[Passage, ...]:
        """Passages by exact id."""
        return self.index.read(ids)

    def _by_words(self, words: Sequence[Weighted], k: int) -> Ranked:
        weights = weighted(words)
        return self._rescored(self.index.rank(weights, k), weights)

    def _rescored(self, ranked: Ranked, weights: dict[str, float]) -> Ranked:
        if self.score is None:
            return ranked
        words = [stems(text) for text in self._texts(ranked)]
        return best_first((number, self.score(weights, held)) for (number, _), held in zip(ranked, words, strict=True))

    def _texts(self, ranked: Ranked) -> list[str]:
        passages = self.index.read(self.index.ids([number for number, _ in ranked]))
        return [whole_text(passage) for passage in passages]

    def _with_meaning(self, ranked: Ranked, meant: Vectors, embed: Embed) -> Ranked:
        shares = _shares(ranked)
        if self.vectors is not None:
            scores = COSINE * (self.vectors @ meant).astype(np.float64)
            for number, share in shares:
                scores[number] += share
            return best_first((number, float(score)) for number, score in enumerate(scores))
        top, rest = shares[:RERANKED], shares[RERANKED:]
        cosines = embed(self._texts(top)) @ meant if top else ()
        both = ((number, share + COSINE * float(cosine)) for (number, share), cosine in zip(top, cosines, strict=True))
        return [*best_first(both), *rest]


def _shares(ranked: Ranked) -> Ranked:
    """Scores as shares of the best one; log-likelihoods, which may be below 0, from the worst one on."""
    best = ranked[0][1] if ranked else 1.0
    worst = min(0.0, ranked[-1][1] if ranked else 0.0)
    return [(number, (score - worst) / max(best - worst, 1e-9)) for number, score in ranked]


def best_first(scored: Iterable[tuple[int, float]]) -> Ranked:
    """Best first, ties in corpus order, whatever the last bits of a sum are."""
    return sorted(scored, key=lambda pair: (-round(pair[1], DECIMALS), pair[0]))
