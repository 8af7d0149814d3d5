"""Rankings: passages by their numbers, with scores that are rounded so that equal ones are seen to be equal."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

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
