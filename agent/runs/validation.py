"""`convagent validate`: a run file checked against the topics that it answers."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from agent.runs.given_ranking import read_ranking
from agent.runs.trec import begins_as_trec_run
from agent.tracks.registry import load_edition
from agent.tracks.rules import Checks
from agent.tracks.run_files import run_problems
from agent.tracks.topic_files import read_topics
from indexes.sharding.sharded_index import open_index
from indexes.storage.files import map_file
from schemas.errors import InvalidInputError
from schemas.records import Problem


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What a run is to be checked against, beside its topics."""

    edition: str | None = None  # None: that of the topics
    collection: Literal["any", "clueweb22"] | None = None  # None: the edition's
    index: Path | None = None  # that its passages must be in
    ranking: Path | None = None  # that its answers must be built from
    strict: bool = False  # whether our own rules are errors, too


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that is wrong with a run, and the number of turns in its topics."""

    run: Path
    turns: int
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def check_run(run: Path, topics_file: Path, request: CheckRequest = CheckRequest()) -> Verdict:
    """Everything wrong with a run file. Raises `InvalidInputError` for a ranking alone, which no edition's run is."""
    data = map_file(run)
    if begins_as_trec_run(data):
        what = "is a TREC run (qid Q0 docid rank score tag): a ranking, without answers to check"
        remedy = "`convagent eval search` measures it, and `convagent answer --ranking` answers from it."
        raise InvalidInputError(what, where=str(run), remedy=remedy)
    topics = read_topics(topics_file)
    edition = request.edition or topics.edition
    index = open_index(request.index) if request.index else None
    hits = read_ranking(request.ranking).hits if request.ranking else None
    checks = Checks(
        request.collection or load_edition(edition).limits.collection,
        request.strict,
        cache(lambda id: index.find(id) is not None) if index else None,
        None if hits is None else {turn_id: [hit.id for hit in found] for turn_id, found in hits.items()},
    )
    found = run_problems(data, topics, edition, checks)
    problems, warnings = (tuple(p for p in found if p.severity == severity) for severity in ("error", "warning"))
    return Verdict(run, len(topics.turn_ids()), problems, warnings)
