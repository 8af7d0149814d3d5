"""Scores as the organisers' validators and trec_eval see them: 32-bit floats, in which close scores are ties."""

import ctypes
import math
from collections.abc import Iterable

from indexes.ranking.rankings import separate_scores
from schemas.records import Hit


def as_32_bits(score: float) -> float:
    """The nearest 32-bit float."""
    return ctypes.c_float(score).value


def separate_32_bit_scores(ranked: Iterable[tuple[str, float]]) -> tuple[Hit, ...]:
    """Hits of a ranking whose scores decrease by 0.0001, and by more where a 32-bit float would not show that."""
    import numpy as np

    hits: list[Hit] = []
    ceiling = math.inf
    ids, scores = zip(*pairs, strict=True) if (pairs := list(ranked)) else ((), ())
    for hit in separate_scores(ids, scores):
        score = hit.score if as_32_bits(hit.score) < ceiling else float(np.nextafter(np.float32(ceiling), -np.inf))
        hits.append(Hit(hit.id, score))
        ceiling = as_32_bits(score)
    return tuple(hits)
