"""A given ranking: a TREC run, a run of any edition, or topics with a ranking of their own; and TREC runs as written.

That of topics is an only-response run's, or else the labels' passage lists. A TREC run has lines of a query, a passage
and its score, best first:

    9-1_1 Q0 bread:1 1 9.5 ours

source: README of trec_eval (usnistgov/trec_eval), "qid iter docno rank sim run_id"; `iter` and `rank` do not count.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_float
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from agent.tracks.files import detect_edition, parse_topics, read_run
from agent.tracks.lenient_reading import Oddities, check_unique, report_oddities
from indexes.ranking.rankings import separate_scores
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Hit, Passage, Topics
from schemas.wire import Data, decode

MAX_BEGINNING = 1 << 16  # bytes in which a file shows what it is
Ranked = dict[str, list[tuple[str, float]]]  # by turn id: passage ids with their scores, best first


@dataclass(frozen=True, slots=True)
class GivenRanking:
    """Hits by turn id, best first, scores strictly decreasing; and the texts that came with them, by passage id."""

    hits: Mapping[str, tuple[Hit, ...]]
    texts: Mapping[str, Passage]
    digest: str  # SHA-256 of the file
    labels: bool = False  # whether the passages are the topics' own, which are labels
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # as the file gives them
    name: str = ""  # of the run, where the file has one


def read_ranking(path: Path) -> GivenRanking:
    """The ranking of a file. Its contents show which kind of file it is; what is odd about it is logged.

    Raises `InvalidInputError` with the place for a file that is none, for a broken line, and for a passage listed
    twice for one turn.
    """
    data = read_utf8(path)
    texts: dict[str, Passage] = {}
    labels, name = False, ""
    with report_oddities(path) as oddities:
        beginning = bytes(data[:MAX_BEGINNING]).lstrip()[:1]
        if beginning not in (b"{", b"["):
            found = decode_rankings(data)
        elif beginning == b"[" and _holds_topics(data):
            topics = parse_topics(data, oddities)
            found, labels = _list_topic_passages(topics), not topics.rankings
        else:
            found, texts, name = _read_run_ranking(data, oddities)
        check_unique((f"turn {turn_id}:", id) for turn_id, ranked in found.items() for id, _ in ranked)
    scores = {turn_id: dict(ranked) for turn_id, ranked in found.items()}
    hits = {turn_id: separate_scores(ranked, [*ranked.values()]) for turn_id, ranked in scores.items()}
    return GivenRanking(hits, texts, hashlib.sha256(data).hexdigest(), labels, scores, name)


def _holds_topics(data: bytes) -> bool:
    try:
        return detect_edition(decode(data)) is not None
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is not JSON ({error})") from error


def _list_topic_passages(topics: Topics) -> Ranked:
    """The topics' own passage lists have an order and no scores: those are 1, 1/2, 1/3, ..."""
    given = topics.rankings or {turn_id: labels.passage_ids for turn_id, labels in topics.labels.items()}
    return {
        turn_id: [(id, 1.0 / rank) for rank, id in enumerate(dict.fromkeys(ids), start=1)]
        for turn_id, ids in given.items()
        if ids
    }


def _read_run_ranking(data: bytes, oddities: Oddities) -> tuple[Ranked, dict[str, Passage], str]:
    """The first ranking of each turn of a run, the texts that it gives, and its name."""
    _, info, turns = read_run(data, oddities)
    found: Ranked = {}
    texts: dict[str, Passage] = {}
    for turn in turns.values():
        info = turn.info or info
        passages = turn.responses[0].passages or ()
        found[turn.turn_id] = sort_by_score([(passage.id, passage.score) for passage in passages])
        texts |= {p.id: Passage(p.id, p.text.strip()) for p in passages if p.text.strip()}
    return found, texts, info.name


def begins_as_trec_run(data: Data) -> bool:
    """Whether the first line that is no comment is of a TREC run."""
    lines = bytes(data[:MAX_BEGINNING]).decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    try:
        return bool(decode_rankings(first.encode()))
    except InvalidInputError:
        return False


def decode_rankings(data: bytes) -> Ranked:
    """The rankings of a file. Raises `InvalidInputError` with the line that is of another form."""
    found: Ranked = {}
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
