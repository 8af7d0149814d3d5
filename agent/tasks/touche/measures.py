"""How good a run of Touché is: nDCG@5 for relevance and for quality, the measure of both years (overviews 2020, 2021).

Labels are -2 (no argument) or from 0 up; -2 counts as 0. The gain of a label is the label itself, as in trec_eval.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.evaluation.scores import Qrels, RankedScores, Scores, ranking_measures, read_qrels, turns_with_relevant
from agent.runs.given_ranking import read_ranking
from schemas.errors import InvalidInputError

NDCG = "nDCG@5"
RELEVANCE, QUALITY = f"relevance {NDCG}", f"quality {NDCG}"
MEASURES = (RELEVANCE, QUALITY)


def evaluate_touche(runs: Sequence[Path], relevance: Path, quality: Path | None) -> list[Scores]:
    """The measures of each run, in the order given; that of quality only where there are labels for it.

    Raises `InvalidInputError` for labels of which none is above 0.
    """
    labels = {RELEVANCE: read_labels(relevance)} | ({QUALITY: read_labels(quality)} if quality else {})
    return [measure_touche(run.name, read_ranking(run).scores, labels) for run in runs]


def read_labels(path: Path) -> Qrels:
    """TREC labels, `topic 0 argument level`."""
    if not turns_with_relevant(found := read_qrels(path)):
        raise InvalidInputError("holds no label above 0", where=str(path))
    return found


def measure_touche(name: str, ranked: RankedScores, labels: Mapping[str, Qrels]) -> Scores:
    """nDCG@5 of a ranking by topic, under each measure's name, for topics that have a label."""
    topics: dict[str, dict[str, float]] = {}
    for measure, judged in labels.items():
        for id, found in ranking_measures([NDCG], ranked, judged).items():
            topics.setdefault(id, {})[measure] = found[NDCG]
    return Scores(name, topics, sum(not ranked.get(id) for id in topics))
