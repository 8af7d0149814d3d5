"""How good rankings are, against relevance labels; what all measures share: scores by turn, means, how sure they are.

The turns of a conversation are not independent of each other. So for a report whole conversations are drawn, and whole
conversations change sides: a system that is lost at the third turn is often lost for the rest, so that single turns
would make everything look surer than it is. All draws are from a fixed seed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from agent.runs.given_ranking import read_ranking
from agent.tracks.files import read_run, read_topics
from agent.tracks.lenient_reading import report_oddities
from agent.tracks.run_records import RunTurn
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError, UsageError

Qrels = Mapping[str, Mapping[str, int]]  # by turn id: passage or statement id to relevance
RankedScores = Mapping[str, Mapping[str, float]]  # by turn id: passage or statement id to score
MAX_LEVEL = 1000  # of a label; trec_eval makes room for every level up to the highest
LEVEL = re.compile(r"([+-]?\d+)(?:\.\d*)?", re.ASCII)  # and the fraction that does not count


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one run, turn by turn: those that are defined for it. Turns that a run lacks score 0."""

    name: str
    turns: Mapping[str, Mapping[str, float]]  # by turn id, then by measure
    missing: int  # judged turns that the run lacks

    def by_turn(self, measure: str) -> dict[str, float]:
        """A measure by turn id, where it is defined."""
        return {turn_id: found[measure] for turn_id, found in self.turns.items() if measure in found}

    def mean(self, measure: str) -> float:
        """The mean over all turns for which it is defined; 0 where there are none."""
        values = self.by_turn(measure).values()
        return sum(values) / len(values) if values else 0.0


def ranking_measures(measures: Sequence[str], ranked: RankedScores, judged: Qrels) -> dict[str, dict[str, float]]:
    """Measures of a ranking by score, by `ir_measures`, for every turn that has a label: those of `trec_eval -c`.

    As trec_eval has it, scores are 32-bit floats, among equal ones the greater id comes first, and a turn without
    anything relevant or that the run lacks counts 0. Raises `InvalidInputError` for an id with a NUL: the C library
    takes it for the end of the id.
    """
    import ir_measures

    named = {ir_measures.parse_measure(name): name for name in measures}
    # A label below 0 gains nothing, like 0; a turn that has no other label ends the process in pytrec_eval 0.5.11.
    labelled = {turn_id: {id: max(0, n) for id, n in found.items()} for turn_id, found in judged.items() if found}
    turns = {turn_id: dict.fromkeys(measures, 0.0) for turn_id in labelled}
    for turn_id, ids in (*labelled.items(), *ranked.items()):
        if any("\0" in id for id in (turn_id, *ids)):
            raise InvalidInputError("has an id with a NUL in it", where=f"turn {turn_id}")
    run = {turn_id: dict(found) for turn_id in labelled if (found := ranked.get(turn_id))}
    for value in ir_measures.iter_calc(list(named), labelled, run) if run else ():
        turns[value.query_id][named[value.measure]] = float(value.value)
    return turns


def turns_with_relevant(judged: Qrels, rel_level: int = 1) -> Qrels:
    """The turns with a passage or statement of at least this level: the others cannot tell rankings apart."""
    return {id: found for id, found in judged.items() if any(level >= rel_level for level in found.values())}


def check_turns_shared(run: Path, found: Mapping[str, object], judged: Mapping[str, object]) -> None:
    """Raise `InvalidInputError` with a turn of each where the run and the labels have no turn in common."""
    if found and not found.keys() & judged.keys():
        mine, theirs = next(iter(found)), next(iter(judged))
        what = f"has none of the turns that have labels: it has {mine!r}, the labels have {theirs!r}"
        raise InvalidInputError(what, where=str(run), remedy="Are these the labels of another year?")


def read_qrels(path: Path) -> Qrels:
    """TREC relevance labels, `turn 0 id level`. Raises `InvalidInputError` with the line that is no label.

    Of a level only the whole number counts, as in trec_eval: `2.0` is 2, `-2.0` is -2, and `1.7` is 1.
    """
    found: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_utf8(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            turn_id, _, id, written = line.split()
            level = LEVEL.fullmatch(written)
            if not level or abs(int(level[1])) > MAX_LEVEL:
                raise ValueError("a level that no labels have")
        except ValueError:
            raise InvalidInputError(f"is not `turn 0 id level`: {line[:80]!r}", where=f"{path}:{number}") from None
        found.setdefault(turn_id, {})[id] = int(level[1])
    return found


def read_run_file(path: Path) -> tuple[str, dict[str, RunTurn]]:
    """The name of a run's edition, and its turns by id. Raises `InvalidInputError` for a file that is no valid run."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        edition, _, turns = read_run(data, oddities)
        return edition, turns


@cache
def rouge_scorer(*measures: str) -> Any:
    """Of `rouge-score`, without stemming: its `score(truth, text)` has precision, recall and F of each measure."""
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    # Where it makes the same tokenizer itself it logs that, by a handler that repeats our messages too.
    return RougeScorer(list(measures), tokenizer=DefaultTokenizer(use_stemmer=False))


def paired_differences(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """By how much the first is above the second, at each turn that both have."""
    return {turn_id: value - other[turn_id] for turn_id, value in one.items() if turn_id in other}


def p_value(one: Scores, other: Scores, measure: str) -> float:
    """Of a paired t-test over the turns for which both have it (two-sided); 1 where the two never differ."""
    from scipy.stats import ttest_1samp

    differences = [*paired_differences(one.by_turn(measure), other.by_turn(measure)).values()]
    if len(differences) < 2 or not any(differences):
        return 1.0
    return float(ttest_1samp(differences, 0.0).pvalue)


CUTOFFS = 1, 3, 5, 10


def name_measures(rel_level: int = 1) -> tuple[str, ...]:
    """The measures as `ir_measures` names them. From `rel_level` on a label counts in those that are not graded."""
    rel = f"(rel={rel_level})" if rel_level != 1 else ""
    graded = (f"nDCG@{cutoff}" for cutoff in CUTOFFS)
    precisions = (f"P{rel}@{cutoff}" for cutoff in CUTOFFS)
    return (*graded, *precisions, f"R{rel}@10", f"R{rel}@100", f"AP{rel}", f"RR{rel}")


def evaluate_search(runs: Sequence[Path], qrels: Path | None, topics: Path | None, rel_level: int = 1) -> list[Scores]:
    """The measures of each run, in the order given. The runs are in any form that `--ranking` takes.

    Raises `InvalidInputError` where nothing is relevant, and for a run that has none of the judged turns.
    """
    judged = read_judgements(qrels, topics, rel_level)
    ranked = {run: read_ranking(run).scores for run in runs}
    for run, found in ranked.items():
        check_turns_shared(run, found, judged)
    return [measure_search(run.name, ranked[run], judged, rel_level) for run in runs]


def measure_search(name: str, ranked: RankedScores, judged: Qrels, rel_level: int = 1) -> Scores:
    """The measures of a ranking of passages by score."""
    turns = ranking_measures(name_measures(rel_level), ranked, judged)
    return Scores(name, turns, sum(not ranked.get(turn_id) for turn_id in turns))


def read_judgements(qrels: Path | None, topics: Path | None, rel_level: int = 1) -> Qrels:
    """Labels of passages by turn id: those of a file, or else the topics' own passages, each of level 1.

    Raises `UsageError` unless one of the two is given, `InvalidInputError` where nothing is relevant.
    """
    if (qrels is None) == (topics is None):
        raise UsageError("either --qrels or --topics is needed", remedy="Topics are judged by their own passage lists.")
    found = read_qrels(qrels) if qrels else {}
    if topics:
        found = {id: dict.fromkeys(known.passage_ids, 1) for id, known in read_topics(topics).labels.items()}
    if not turns_with_relevant(found, rel_level):
        level = f" of level {rel_level} or above" if rel_level != 1 else ""
        raise InvalidInputError(f"holds no relevant passage{level}", where=str(qrels or topics))
    return found


SEED = 0
RESAMPLES, PERMUTATIONS = 5_000, 20_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


def bootstrap_interval(values: Mapping[str, float]) -> Interval:
    """The mean of a value by turn id, with its percentile interval over conversations that are drawn anew.

    Raises `ValueError` where there is no value.
    """
    from scipy.stats import bootstrap

    if not values:
        raise ValueError("no value, so no mean")
    totals, sizes = _sum_by_conversation(values)
    mean = sum(values.values()) / len(values)
    if len(totals) == 1:
        return Interval(mean, mean, mean)

    def find_mean(totals: Any, sizes: Any, axis: int) -> Any:
        return totals.sum(axis) / sizes.sum(axis)

    how = {"paired": True, "vectorized": True, "n_resamples": RESAMPLES, "method": "percentile", "rng": SEED}
    found = bootstrap((totals, sizes), find_mean, **how).confidence_interval
    return Interval(mean, float(found.low), float(found.high))


def randomisation_p(differences: Mapping[str, float]) -> float:
    """The two-sided p-value of a paired randomisation test whose pairs are conversations (Smucker et al., CIKM 2007).

    Exact where there are at most `PERMUTATIONS` changes of sides, else from so many random ones.
    """
    from scipy.stats import permutation_test

    totals = _sum_by_conversation(differences)[0] if differences else ()
    if len(totals) < 2 or not any(totals):
        return 1.0
    how = {"permutation_type": "samples", "vectorized": True, "n_resamples": PERMUTATIONS, "rng": SEED}
    return float(permutation_test((totals,), lambda totals, axis: totals.sum(axis), **how).pvalue)


def correct_by_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values of several tests, corrected so that all hold together (Holm, 1979), in the same order."""
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    raised = (min(1.0, (len(p_values) - rank) * p_values[place]) for rank, place in enumerate(ranked))
    corrected = dict(zip(ranked, accumulate(raised, max), strict=True))
    return tuple(corrected[place] for place in range(len(p_values)))


def _sum_by_conversation(values: Mapping[str, float]) -> tuple[Any, Any]:
    """The sum of each conversation's values, and how many they are, as arrays."""
    import numpy

    found: dict[str, list[float]] = {}
    for turn_id, value in values.items():
        found.setdefault(turn_id.rpartition("_")[0], []).append(value)
    return numpy.array([sum(each) for each in found.values()]), numpy.array([float(len(e)) for e in found.values()])
