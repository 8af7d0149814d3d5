"""How good a run's rankings are, against relevance labels or the topics' own passages."""

from collections.abc import Sequence
from pathlib import Path

from agent.evaluation.scores import (
    Qrels,
    RankedScores,
    Scores,
    check_turns_shared,
    ranking_measures,
    read_qrels,
    turns_with_relevant,
)
from agent.runs.given_ranking import read_ranking
from agent.tracks.topic_files import read_topics
from schemas.errors import InvalidInputError, UsageError

CUTOFFS = 1, 3, 5, 10


def name_measures(rel_level: int = 1) -> tuple[str, ...]:
    """The measures as `ir_measures` names them. From `rel_level` on a label counts in those that are not graded."""
    rel = f"(rel={rel_level})" if rel_level != 1 else ""
    graded = (f"nDCG@{cutoff}" for cutoff in CUTOFFS)
    precisions = (f"P{rel}@{cutoff}" for cutoff in CUTOFFS)
    return (*graded, *precisions, f"R{rel}@10", f"R{rel}@100", f"AP{rel}", f"RR{rel}")


MEASURES = name_measures()


def evaluate_search(runs: Sequence[Path], qrels: Path | None, topics: Path | None, rel_level: int = 1) -> list[Scores]:
    """The measures of each run, in the order given. The runs are in any form that `--ranking` takes.

    Raises `InvalidInputError` where nothing is relevant, and for a run that has none of the judged turns.
    """
    judged = read_judgements(qrels, topics, rel_level)
    ranked = {run: read_scores(run) for run in runs}
    for run, found in ranked.items():
        check_turns_shared(run, found, judged)
    return [measure_search(run.name, ranked[run], judged, rel_level) for run in runs]


def measure_search(name: str, ranked: RankedScores, judged: Qrels, rel_level: int = 1) -> Scores:
    """The measures of a ranking of passages by score."""
    turns = ranking_measures(name_measures(rel_level), ranked, judged)
    return Scores(name, turns, sum(not ranked.get(turn_id) for turn_id in turns))


def read_scores(run: Path) -> RankedScores:
    """The scores of a run in any form that `--ranking` takes, as the file gives them."""
    return read_ranking(run).scores


def read_judgements(qrels: Path | None, topics: Path | None, rel_level: int = 1) -> Qrels:
    """Labels of passages by turn id: those of a file, or else the topics' own passages, each of level 1.

    Raises `UsageError` unless one of the two is given, `InvalidInputError` where nothing is relevant.
    """
    if (qrels is None) == (topics is None):
        raise UsageError("either --qrels or --topics is needed", remedy="Topics are judged by their own passage lists.")
    if qrels is not None:
        found = read_qrels(qrels)
    else:
        labels = read_topics(topics).labels if topics else {}
        found = {turn_id: dict.fromkeys(known.passage_ids, 1) for turn_id, known in labels.items()}
    if not turns_with_relevant(found, rel_level):
        level = f" of level {rel_level} or above" if rel_level != 1 else ""
        raise InvalidInputError(f"holds no relevant passage{level}", where=str(qrels or topics))
    return found
