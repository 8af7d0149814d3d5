"""A given ranking, from whichever file it comes in.

Read are: TREC runs (`agent/exchange/trec.py`), runs of every edition, queries with candidates
(`agent/exchange/candidates.py`), scores by turn and passage (`{"9-1_1": {"bread:1": 9.5}}`), and topics with a ranking
of their own: that of an only-response run, or else the labels' passage lists.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from agent.exchange.answer_files import read_any_run
from agent.exchange.candidates import Candidates, decode_candidates, find_queries
from agent.exchange.trec import MAX_BEGINNING, begins_as_trec_run, decode_rankings, sort_by_score
from agent.tracks.ikat.ikat_topics import read_turn_ids
from agent.tracks.lenient_reading import decode_leniently, decode_spelling, list_problems
from agent.tracks.oddities import Oddities, find_duplicates, report_oddities
from agent.tracks.run_records import separate_32_bit_scores
from agent.tracks.topic_files import detect_edition, parse_topics
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Hit, Passage, Problem, Topics
from schemas.wire import Data

JSON_OPENINGS = (b"{", b"[")
Scores = dict[str, dict[str, float]]


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
    with report_oddities(path) as oddities:
        read = _parse(data, oddities)
        found = read_turn_ids(read.ranked, oddities)
    doubled = find_duplicates((f"turn {turn_id}:", id) for turn_id, ranked in found.items() for id, _ in ranked)
    if doubled and not read.labels:
        raise InvalidInputError(list_problems("lists passages twice", doubled), where=str(path))
    hits = {turn_id: separate_32_bit_scores(dict.fromkeys(ranked)) for turn_id, ranked in found.items()}
    scores = {turn_id: dict(ranked) for turn_id, ranked in found.items()}
    return GivenRanking(hits, read.texts, hashlib.sha256(data).hexdigest(), read.labels, scores, read.name)


def describe_ranking(data: Data) -> str:
    """What a file is that holds a ranking and nothing else; "" for a run of an edition and for any other file."""
    if bytes(data[:MAX_BEGINNING]).lstrip()[:1] not in JSON_OPENINGS:
        return "a TREC run (qid Q0 docid rank score tag)" if begins_as_trec_run(data) else ""
    if find_queries(data, Oddities()) is not None:
        return "a file of queries with candidates"
    return "a file of scores ({qid: {docid: score}})" if _holds_scores(data) else ""


RankedIds = dict[str, list[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a file says: passages with their scores by turn id, best first, and what came with them."""

    ranked: RankedIds
    texts: dict[str, Passage] = field(default_factory=dict)
    labels: bool = False
    name: str = ""


def _parse(data: bytes, oddities: Oddities) -> _Found:
    first = data.lstrip()[:1]
    if first not in JSON_OPENINGS:
        return _Found(decode_rankings(data))
    if (queries := find_queries(data, oddities)) is not None:
        return _read_candidates(decode_candidates(queries, oddities))
    if first == b"[" and detect_edition(_decode_list(data)):
        topics = parse_topics(data, oddities)
        return _Found(_read_topic_passages(topics), labels=not topics.rankings)
    if _holds_scores(data):
        scores = decode_leniently(data, Scores, "$", oddities)
        return _Found({turn_id: sort_by_score(list(ranked.items())) for turn_id, ranked in scores.items()})
    return _read_run_ranking(data, oddities)


def _holds_scores(data: Data) -> bool:
    """Whether a file is an object of turn ids, each with its passage ids and their scores."""
    try:
        return any(decode_spelling(data, dict[str, dict[str, float | str]], "$", Oddities()).values())
    except msgspec.DecodeError:
        return False


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


def _read_run_ranking(data: bytes, oddities: Oddities) -> _Found:
    _, info, turns = read_any_run(data, oddities)
    found: RankedIds = {}
    texts: dict[str, Passage] = {}
    for turn in turns:
        if turn.turn_id in found:
            raise InvalidInputError(f"has turn {turn.turn_id} twice")
        info = turn.info or info
        passages = turn.responses[0].passages or ()
        found[turn.turn_id] = sort_by_score([(passage.id, passage.score) for passage in passages])
        texts |= {p.id: Passage(p.id, p.text.strip()) for p in passages if p.text.strip()}
    return _Found(found, texts, name=info.name)


def _read_candidates(queries: Iterable[Candidates]) -> _Found:
    found: RankedIds = {}
    texts: dict[str, Passage] = {}
    for query in queries:
        if query.qid in found:
            raise InvalidInputError(f"has turn {query.qid} twice")
        found[query.qid] = sort_by_score([(hit.id, hit.score) for hit in query.hits])
        texts |= {passage.id: passage for passage in query.passages if passage.text}
    return _Found(found, texts)


def restrict_to_topics(ranking: GivenRanking, topics: Topics, k: int) -> tuple[GivenRanking, list[Problem]]:
    """The ranking of these turns, at most `k` deep, and which turns it lacks.

    Raises `InvalidInputError` where it has none of them.
    """
    turn_ids = topics.turn_ids()
    kept = {turn_id: ranking.hits.get(turn_id, ())[:k] for turn_id in turn_ids}
    if ranking.hits and not any(kept.values()):
        mine, theirs = next(iter(ranking.hits)), next(iter(turn_ids), "none")
        what = f"has none of the turns of these topics: it has {mine!r}, they have {theirs!r}"
        raise InvalidInputError(what, remedy="Is it a ranking for the topics of another year?")
    missing = [Problem(f"turn {turn_id}", "has no ranking") for turn_id, hits in kept.items() if not hits]
    return replace(ranking, hits=kept), missing
