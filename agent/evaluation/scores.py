"""What the measures of all tasks have in common: labels, scores by turn, means and a significance test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent.tracks.oddities import report_oddities
from agent.tracks.run_files import read_detected_run
from agent.tracks.run_records import RunTurn
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError

Qrels = Mapping[str, Mapping[str, int]]  # by turn id: passage or statement id to relevance
RankedScores = Mapping[str, Mapping[str, float]]  # by turn id: passage or statement id to score
MAX_LEVEL = 1000  # level of a label


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
    """Measures of a ranking by score, by `ir_measures`, for every judged turn that has something relevant.

    Raises `InvalidInputError` for an id with a NUL: the C library takes it for the end of the id.
    """
    import ir_measures

    named = {ir_measures.parse_measure(name): name for name in measures}
    relevant = turns_with_relevant(judged)
    turns = {turn_id: dict.fromkeys(measures, 0.0) for turn_id in relevant}
    for turn_id, ids in (*relevant.items(), *ranked.items()):
        if any("\0" in id for id in (turn_id, *ids)):
            raise InvalidInputError("has an id with a NUL in it", where=f"turn {turn_id}")
    run = {turn_id: dict(found) for turn_id in relevant if (found := ranked.get(turn_id))}
    for value in ir_measures.iter_calc(list(named), relevant, run) if run else ():
        turns[value.query_id][named[value.measure]] = float(value.value)
    return turns


def turns_with_relevant(judged: Qrels) -> Qrels:
    """The turns with a relevant passage or statement: the others cannot tell rankings apart."""
    return {turn_id: found for turn_id, found in judged.items() if any(level > 0 for level in found.values())}


def read_qrels(path: Path) -> Qrels:
    """TREC relevance labels, `turn 0 id level`. Raises `InvalidInputError` with the line that is no label."""
    found: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_utf8(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            turn_id, _, id, level = line.split()
            found.setdefault(turn_id, {})[id] = _parse_level(level)
        except ValueError:
            raise InvalidInputError(f"is not `turn 0 id level`: {line[:80]!r}", where=f"{path}:{number}") from None
    return found


def _parse_level(text: str) -> int:
    """A level; trec_eval makes room for every level up to the highest."""
    if abs(level := int(text)) > MAX_LEVEL:
        raise ValueError("a level that no labels have")
    return level


def read_run_file(path: Path) -> tuple[str, list[RunTurn]]:
    """The name of a run's edition, and its turns. Raises `InvalidInputError` for a file that is no valid run."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        edition, _, turns = read_detected_run(data, oddities)
        return edition, list(turns)


@cache
def rouge_scorer(*measures: str) -> Any:
    """Of `rouge-score`, without stemming: its `score(truth, text)` has precision, recall and F of each measure."""
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    # Where it makes the same tokenizer itself it logs that, by a handler that repeats our messages too.
    return RougeScorer(list(measures), tokenizer=DefaultTokenizer(use_stemmer=False))


def p_value(one: Scores, other: Scores, measure: str) -> float:
    """Of a paired t-test over the turns for which both have it (two-sided); 1 where the two never differ."""
    from scipy.stats import ttest_rel

    mine, theirs = one.by_turn(measure), other.by_turn(measure)
    pairs = [(value, theirs[turn_id]) for turn_id, value in mine.items() if turn_id in theirs]
    if len(pairs) < 2 or all(left == right for left, right in pairs):
        return 1.0
    left, right = zip(*pairs, strict=True)
    return float(ttest_rel(left, right).pvalue)
