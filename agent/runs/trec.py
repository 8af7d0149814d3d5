"""Rankings as trec_eval reads them: lines of a query, a passage and its score, best first.

    9-1_1 Q0 bread:1 1 9.5 ours

source: README of trec_eval (usnistgov/trec_eval), "qid iter docno rank sim run_id"; `iter` and `rank` do not count.
"""

import math
from collections.abc import Iterable, Sequence
from ctypes import c_float

from schemas.errors import InvalidInputError
from schemas.records import Hit
from schemas.wire import Data

MAX_BEGINNING = 1 << 16  # bytes in which a file shows what it is


def holds_json(data: Data) -> bool:
    """Whether a file begins as JSON does."""
    return bytes(data[:MAX_BEGINNING]).lstrip()[:1] in (b"{", b"[")


def begins_as_trec_run(data: Data) -> bool:
    """Whether the first line that is no comment is of a TREC run."""
    lines = bytes(data[:MAX_BEGINNING]).decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    try:
        return bool(decode_rankings(first.encode()))
    except InvalidInputError:
        return False


def decode_rankings(data: bytes) -> dict[str, list[tuple[str, float]]]:
    """The rankings of a file. Raises `InvalidInputError` with the line that is of another form."""
    found: dict[str, list[tuple[str, float]]] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        columns = line.split()
        if not columns or columns[0].startswith("#"):
            continue
        try:
            qid, _, id, _, written, _ = columns
            if not math.isfinite(score := float(written)):
                raise ValueError("a score that orders nothing")
        except ValueError:
            what = f"is no run that can be read: line {number} is not `qid Q0 docid rank score tag`: {line[:80]!r}"
            remedy = "A ranking is a TREC run, a run file, or a topics file."
            raise InvalidInputError(what, remedy=remedy) from None
        found.setdefault(qid, []).append((id, score))
    return {qid: sort_by_score(ranked) for qid, ranked in found.items()}


def sort_by_score(ranked: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The ranking as trec_eval orders it: by score, as a 32-bit float; among equal ones the greater id is first."""
    return sorted(ranked, key=lambda pair: (c_float(pair[1]).value, pair[0]), reverse=True)


def format_trec_lines(qid: str, hits: Iterable[Hit], name: str) -> str:
    """A ranking as lines of a TREC run, best first; scores keep all their digits, white space in `name` becomes `_`.

    Raises `InvalidInputError` for what a TREC run cannot say: an id that is no single word, a passage twice.
    """
    hits = tuple(hits)
    ids = [hit.id for hit in hits]
    if len(set(ids)) < len(ids):
        raise InvalidInputError("lists a passage twice", where=f"turn {qid}")
    for id in (qid, *ids):
        if id.split() != [id]:
            raise InvalidInputError(f"a TREC run cannot name {id!r}: an id there is one word", where=f"turn {qid}")
    tag = "_".join(name.split()) or "run"
    return "".join(f"{qid} Q0 {hit.id} {rank} {hit.score!r} {tag}\n" for rank, hit in enumerate(hits, start=1))
