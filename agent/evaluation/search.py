"""How good a run's rankings are, against relevance labels or the topics' own passages."""

from collections.abc import Sequence
from pathlib import Path

from agent.evaluation.scores import Qrels, RankedScores, Scores, ranking_measures, read_qrels, turns_with_relevant
from agent.runs.given_ranking import read_ranking
from agent.tracks.topic_files import read_topics
from schemas.errors import InvalidInputError, UsageError

MEASURES = ("nDCG@3", "nDCG@5", "RR", "R@10", "R@100", "AP")


def evaluate_search(runs: Sequence[Path], qrels: Path | None, topics: Path | None) -> list[Scores]:
    """The measures of each run, in the order given. The runs are in any form that `--ranking` takes."""
    judged = _read_judgements(qrels, topics)
    return [measure_search(run.name, read_scores(run), judged) for run in runs]


def measure_search(name: str, ranked: RankedScores, judged: Qrels) -> Scores:
    """The measures of a ranking of passages by score."""
    turns = ranking_measures(MEASURES, ranked, judged)
    return Scores(name, turns, sum(not ranked.get(turn_id) for turn_id in turns))


def read_scores(run: Path) -> RankedScores:
    """The scores of a run in any form that `--ranking` takes."""
    return {turn_id: {hit.id: hit.score for hit in hits} for turn_id, hits in read_ranking(run).hits.items()}


def _read_judgements(qrels: Path | None, topics: Path | None) -> Qrels:
    if (qrels is None) == (topics is None):
        raise UsageError("either --qrels or --topics is needed", remedy="Topics are judged by their own passage lists.")
    if qrels is not None:
        found = read_qrels(qrels)
    else:
        labels = read_topics(topics).labels if topics else {}
        found = {turn_id: dict.fromkeys(known.passage_ids, 1) for turn_id, known in labels.items()}
    if not (relevant := turns_with_relevant(found)):
        raise InvalidInputError("holds no relevant passage", where=str(qrels or topics))
    return relevant
