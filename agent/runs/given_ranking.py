"""A given ranking, from whichever file it comes in.

Read are: TREC runs (`agent/exchange/trec.py`), runs of every edition, JSON lines of a query with its candidates
(`agent/exchange/candidates.py`), and topics with a ranking of their own: that of an only-response run, or else the
labels' passage lists.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from agent.exchange.candidates import decode_candidates
from agent.exchange.trec import decode_rankings, sort_by_score
from agent.tracks.duplicates import find_duplicates
from agent.tracks.lenient_reading import decode_spelling
from agent.tracks.oddities import Oddities, report_oddities
from agent.tracks.run_files import read_detected_run
from agent.tracks.score_precision import separate_32_bit_scores
from agent.tracks.shapes import list_problems
from agent.tracks.topic_files import detect_edition, parse_topics
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Hit, Passage, Problem, Topics


@dataclass(frozen=True, slots=True)
class GivenRanking:
    """Hits by turn id, best first, scores strictly decreasing; and the texts that came with them, by passage id."""

    hits: Mapping[str, tuple[Hit, ...]]
    texts: Mapping[str, Passage]
    digest: str  # SHA-256 of the file
    labels: bool = False  # whether the passages are the topics' own, which are labels
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # as the file gives them


def read_ranking(path: Path) -> GivenRanking:
    """The ranking of a file. Its contents show which kind of file it is.

    Raises `InvalidInputError` with the place for a file that is none, for a broken line, and for a passage listed
    twice for one turn.
    """
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        found, texts, labels = _parse(data, oddities)
    doubled = find_duplicates((f"turn {turn_id}:", id) for turn_id, ranked in found.items() for id, _ in ranked)
    if doubled and not labels:
        raise InvalidInputError(list_problems("lists passages twice", doubled), where=str(path))
    hits = {turn_id: separate_32_bit_scores(dict.fromkeys(ranked)) for turn_id, ranked in found.items()}
    scores = {turn_id: dict(ranked) for turn_id, ranked in found.items()}
    return GivenRanking(hits, texts, hashlib.sha256(data).hexdigest(), labels, scores)


RankedIds = dict[str, list[tuple[str, float]]]


def _parse(data: bytes, oddities: Oddities) -> tuple[RankedIds, dict[str, Passage], bool]:
    first = data.lstrip()[:1]
    if first == b"[" and detect_edition(_decode_list(data)):
        topics = parse_topics(data, oddities)
        return _read_topic_passages(topics), {}, not topics.rankings
    if first == b"{" and b'"candidates"' in data.partition(b"\n")[0]:
        return *_read_candidates(data), False
    if first in (b"{", b"["):
        return *_read_run_ranking(data, oddities), False
    return decode_rankings(data), {}, False


def _decode_list(data: bytes) -> Any:
    try:
        return decode_spelling(data, Any, "$", Oddities())
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is not JSON ({error})") from error


def _read_topic_passages(topics: Topics) -> RankedIds:
    """The topics' own passage lists have an order and no scores: those are 1, 1/2, 1/3, ..."""
    given = topics.rankings or {turn_id: labels.passage_ids for turn_id, labels in topics.labels.items()}
    return {
        turn_id: [(id, 1.0 / rank) for rank, id in enumerate(dict.fromkeys(ids), start=1)]
        for turn_id, ids in given.items()
        if ids
    }


def _read_run_ranking(data: bytes, oddities: Oddities) -> tuple[RankedIds, dict[str, Passage]]:
    _, _, turns = read_detected_run(data, oddities)
    found: RankedIds = {}
    texts: dict[str, Passage] = {}
    for turn in turns:
        passages = turn.responses[0].passages or ()
        found[turn.turn_id] = sort_by_score([(passage.id, passage.score) for passage in passages])
        texts |= {p.id: Passage(p.id, p.text.strip()) for p in passages if p.text.strip()}
    return found, texts


def _read_candidates(data: bytes) -> tuple[RankedIds, dict[str, Passage]]:
    found: RankedIds = {}
    texts: dict[str, Passage] = {}
    for query in decode_candidates(data):
        found[query.qid] = sort_by_score([(hit.id, hit.score) for hit in query.hits])
        texts |= {passage.id: passage for passage in query.passages if passage.text}
    return found, texts


def restrict_to_topics(ranking: GivenRanking, topics: Topics, k: int) -> tuple[GivenRanking, list[Problem]]:
    """The ranking of these turns, at most `k` deep; and which turns it lacks, and which it has that are not theirs."""
    turn_ids = topics.turn_ids()
    kept = {turn_id: ranking.hits.get(turn_id, ())[:k] for turn_id in turn_ids}
    missing = [Problem(f"turn {turn_id}", "has no ranking") for turn_id, hits in kept.items() if not hits]
    extra = [Problem(f"turn {id}", "is not a turn of these topics") for id in ranking.hits if id not in kept]
    return replace(ranking, hits=kept), missing + extra
