"""How good a run's rankings are, by `ir_measures`, against relevance labels or the topics' own passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.files import read_bytes
from agent.rankings import read_ranking
from agent.tracks import read_topics
from schemas.errors import InvalidInputError, UsageError

MEASURES = ("nDCG@3", "nDCG@5", "RR", "R@10", "R@100", "AP")
Qrels = Mapping[str, Mapping[str, int]]  # by turn id: passage id to relevance
Ranked = Mapping[str, Mapping[str, float]]  # by turn id: passage id to score


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one run: turn by turn, for every turn that has a relevant passage. Turns it lacks score 0."""

    name: str
    turns: Mapping[str, Mapping[str, float]]  # by turn id, then by measure
    missing: int  # judged turns that the run has no ranking for

    def mean(self, measure: str) -> float:
        """The mean over all judged turns."""
        return sum(found[measure] for found in self.turns.values()) / len(self.turns)


def evaluate_search(runs: Sequence[Path], qrels: Path | None, topics: Path | None) -> list[Scores]:
    """The measures of each run, in the order given. The runs are in any form that `--ranking` takes."""
    judged = _relevant(_judgements(qrels, topics))
    return [measured(run.name, _scores_of(run), judged) for run in runs]


def measured(name: str, ranked: Ranked, judged: Qrels) -> Scores:
    """The measures of a ranking of passages by score."""
    import ir_measures

    measures = {name: ir_measures.parse_measure(name) for name in MEASURES}
    turns = {turn_id: dict.fromkeys(MEASURES, 0.0) for turn_id in judged}
    run = {turn_id: dict(ranked.get(turn_id, {})) for turn_id in judged if ranked.get(turn_id)}
    named = {measure: name for name, measure in measures.items()}
    for found in ir_measures.iter_calc(list(measures.values()), judged, run) if run else ():
        turns[found.query_id][named[found.measure]] = float(found.value)
    return Scores(name, turns, len(judged) - len(run))


def _relevant(judged: Qrels) -> Qrels:
    """Turns that have a relevant passage: the others say nothing about a ranking."""
    return {turn_id: found for turn_id, found in judged.items() if any(level > 0 for level in found.values())}


def _scores_of(run: Path) -> Ranked:
    return {turn_id: {hit.id: hit.score for hit in hits} for turn_id, hits in read_ranking(run).hits.items()}


def _judgements(qrels: Path | None, topics: Path | None) -> Qrels:
    if (qrels is None) == (topics is None):
        raise UsageError("either --qrels or --topics is needed", remedy="Topics are judged by their own passage lists.")
    if qrels is not None:
        found = read_qrels(qrels)
    else:
        labels = read_topics(topics).labels if topics else {}
        found = {turn_id: dict.fromkeys(known.passage_ids, 1) for turn_id, known in labels.items()}
    if not _relevant(found):
        raise InvalidInputError("holds no relevant passage", where=str(qrels or topics))
    return found


def read_qrels(path: Path) -> Qrels:
    """TREC relevance labels, `turn 0 id level`. Raises `InvalidInputError` with the line that is none."""
    found: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_bytes(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            turn_id, _, id, level = line.split()
            found.setdefault(turn_id, {})[id] = int(level)
        except ValueError:
            raise InvalidInputError(f"is not `turn 0 id level`: {line[:80]!r}", where=f"{path}:{number}") from None
    return found


def p_value(one: Scores, other: Scores, measure: str) -> float:
    """Of a paired t-test over the turns (two-sided); 1 where the two never differ."""
    from scipy.stats import ttest_rel

    pairs = [(one.turns[turn][measure], other.turns[turn][measure]) for turn in one.turns]
    if all(mine == theirs for mine, theirs in pairs):
        return 1.0
    mine, theirs = zip(*pairs, strict=True)
    return float(ttest_rel(mine, theirs).pvalue)
