"""A given ranking: a TREC run (`agent/runs/trec.py`), a run of any edition, or topics with a ranking of their own.

That of topics is an only-response run's, or else the labels' passage lists.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from agent.runs.trec import decode_rankings, holds_json, sort_by_score
from agent.tracks.lenient_reading import list_problems
from agent.tracks.oddities import Oddities, find_duplicates, report_oddities
from agent.tracks.run_files import read_run
from agent.tracks.topic_files import detect_edition, parse_topics
from indexes.ranking.rankings import separate_scores
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Hit, Passage, Problem, Topics
from schemas.wire import decode

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
        if not holds_json(data):
            found = decode_rankings(data)
        elif data.lstrip().startswith(b"[") and _holds_topics(data):
            topics = parse_topics(data, oddities)
            found, labels = _list_topic_passages(topics), not topics.rankings
        else:
            found, texts, name = _read_run_ranking(data, oddities)
    doubled = find_duplicates((f"turn {turn_id}:", id) for turn_id, ranked in found.items() for id, _ in ranked)
    if doubled and not labels:
        raise InvalidInputError(list_problems("lists passages twice", doubled), where=str(path))
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
    for turn in turns:
        if turn.turn_id in found:
            raise InvalidInputError(f"has turn {turn.turn_id} twice")
        info = turn.info or info
        passages = turn.responses[0].passages or ()
        found[turn.turn_id] = sort_by_score([(passage.id, passage.score) for passage in passages])
        texts |= {p.id: Passage(p.id, p.text.strip()) for p in passages if p.text.strip()}
    return found, texts, info.name


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
