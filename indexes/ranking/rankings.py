"""Rankings: passages by their numbers, with scores that are rounded so that equal ones are seen to be equal; and BM25
for a few texts that are in no index: statements, sentences, phrases."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from indexes.text.analysis import ENGLISH, extract_stems
from indexes.text.languages import stem_query
from schemas.records import Hit

DECIMALS = 4  # of scores: what lies beyond depends on the order in which Tantivy adds
MAX_SCORE = 1e38  # that a 32-bit float can hold
Numbers = npt.NDArray[np.int64]  # of passages
Rows = npt.NDArray[np.bool_]  # of each passage, by its number, whether it is searched
RankedNumbers = list[tuple[int, float]]  # numbers of passages with their scores, best first


def sort_best_first(scored: Iterable[tuple[int, float]]) -> RankedNumbers:
    """Sort by rounded score, best first, and ties in corpus order."""
    return sorted(scored, key=lambda pair: (-round(pair[1], DECIMALS), pair[0]))


def separate_scores(ids: Iterable[str], scores: Sequence[float]) -> tuple[Hit, ...]:
    """Hits of a ranking, by its ids and scores, with scores that decrease by at least 0.0001.

    TREC tools sort by *score*, and the organisers' scripts keep six decimals of a 32-bit float, so equal scores would
    be reordered. A score that is not below the one before it is lowered to one step below; steps are greater where
    scores are so great that a 32-bit float would not show them.
    """
    places = np.arange(len(scores))
    given = np.clip(np.array(scores, dtype=np.float64), -MAX_SCORE, MAX_SCORE)
    unit = min(10**DECIMALS, 0.25 / np.spacing(np.float32(np.abs(given).max(initial=1))))
    lowered = np.minimum.accumulate(np.rint(given * unit) + places) - places
    return tuple(map(Hit, ids, (lowered / unit).tolist()))


def score_by_bm25(query: str, texts: Sequence[str], languages: Sequence[str] = ()) -> list[float]:
    """The BM25+ score of each text for a query, shifted so that a text without any of its words scores 0.

    `languages` are those of the texts; without them, all are in English.
    """
    from rank_bm25 import BM25Plus

    languages = languages or [ENGLISH] * len(texts)
    documents = [extract_stems(text, language) for text, language in zip(texts, languages, strict=True)]
    known = {word for document in documents for word in document}
    words = [word for word in stem_query(query, sorted(set(languages))) if word in known]
    if not words:
        return [0.0] * len(texts)
    *scores, empty_score = BM25Plus([*documents, []]).get_scores(words)
    return [float(score - empty_score) for score in scores]
