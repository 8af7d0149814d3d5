"""Rankings: passages by their numbers, with scores that are rounded so that equal ones are seen to be equal."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from schemas.records import Hit

DECIMALS = 4  # of scores: what lies beyond depends on the order in which Tantivy adds
Numbers = npt.NDArray[np.int64]  # of passages
Rows = npt.NDArray[np.bool_]  # of each passage, by its number, whether it is searched
RankedNumbers = list[tuple[int, float]]  # numbers of passages with their scores, best first


def sort_best_first(scored: Iterable[tuple[int, float]]) -> RankedNumbers:
    """Sort by rounded score, best first, and ties in corpus order."""
    return sorted(scored, key=lambda pair: (-round(pair[1], DECIMALS), pair[0]))


def separate_scores(ids: Iterable[str], scores: Sequence[float]) -> tuple[Hit, ...]:
    """Hits of a ranking, by its ids and scores, with scores that decrease by at least 0.0001.

    TREC tools sort by *score*, and the organisers' scripts keep six decimals of a 32-bit float, so equal scores would
    be reordered. A score that is not below the one before it is lowered to one step below.
    """
    places = np.arange(len(scores))
    steps = np.rint(np.array(scores, dtype=np.float64) * 10**DECIMALS)
    lowered = np.minimum.accumulate(steps + places) - places
    return tuple(map(Hit, ids, (lowered / 10**DECIMALS).tolist()))
