"""`convagent validate`: a run file checked against the topics that it answers."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from agent.runs.given_ranking import begins_as_trec_run, read_ranking
from agent.tracks.files import read_topics, run_problems
from agent.tracks.registry import load_edition
from agent.tracks.rules import Checks
from indexes.sharding.sharded_index import open_index
from indexes.storage.files import map_file
from schemas.errors import InvalidInputError
from schemas.records import Problem


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that is wrong with a run, and the number of turns in its topics."""

    run: Path
    turns: int
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def check_run(
    run: Path,
    topics: Path,
    edition: str | None = None,
    collection: Literal["any", "clueweb22"] | None = None,
    index: Path | None = None,
    ranking: Path | None = None,
    *,
    strict: bool = False,
) -> Verdict:
    """Everything wrong with a run file. Raises `InvalidInputError` for a ranking alone, which no edition's run is.

    The edition is that of the topics by default, the collection the edition's. Passages must be in the index, and
    answers be built from the ranking, where there is one. `strict`: our own rules are errors, too.
    """
    data = map_file(run)
    if begins_as_trec_run(data):
        what = "is a TREC run (qid Q0 docid rank score tag): a ranking, without answers to check"
        remedy = "`convagent eval search` measures it, and `convagent answer --ranking` answers from it."
        raise InvalidInputError(what, where=str(run), remedy=remedy)
    known = read_topics(topics)
    opened = open_index(index) if index else None
    hits = read_ranking(ranking).hits.items() if ranking else None
    checks = Checks(
        collection or load_edition(edition or known.edition).rules.collection,
        strict,
        cache(lambda id: opened.find(id) is not None) if opened else None,
        None if hits is None else {turn_id: [hit.id for hit in found] for turn_id, found in hits},
    )
    found = run_problems(data, known, edition, checks)
    problems, warnings = (tuple(p for p in found if p.severity == severity) for severity in ("error", "warning"))
    return Verdict(run, len(known.turn_ids()), problems, warnings)
