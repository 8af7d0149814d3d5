"""How well the spans of RCD-2020 are found without a model, and what each feature is worth.

    python benchmarks/rcd_spans.py TOPICS [--fit]

TOPICS are training topics, with their titles. The rule is a softmax over the candidates of a dialogue, learned so that
the likelihood of candidates goes as the square of their Jaccard with the title (L2 on standardised features). It is
always judged on dialogues of films that it has not seen. Many candidates tie; the first in the text is taken, and a
second row shows what that is worth. `--fit` prints the numbers of `agent/tasks/rcd.py`.
"""

import argparse
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean

import numpy as np

from agent.evaluation.rcd import SPAN_MEASURES, measure_span, measure_spans
from agent.tasks.rcd import (
    Group,
    Numbers,
    RcdTopics,
    Score,
    Span,
    candidate_spans,
    choose_spans,
    read_topics,
    span_features,
    weigh_features,
)

SEEDS = 20
PENALTY = 3.0  # of the squared weights of standardised features
Columns = tuple[int, ...]
FEATURES = ("names", "two words", "distance", "middle")
ALL: Columns = tuple(range(len(FEATURES)))


@dataclass(frozen=True)
class Case:
    """A group of topics, its candidates, and how close each is to one of the titles."""

    group: Group
    titles: tuple[str, ...]

    @cached_property
    def spans(self) -> list[Span]:
        return candidate_spans(self.group[0])

    @cached_property
    def rows(self) -> Numbers:
        return span_features(self.spans, self.group[0])

    @cached_property
    def target(self) -> Numbers:
        """How likely each candidate should be."""
        close = [max(measure_span(title, span.text)["Jaccard"] for title in self.titles) ** 2 for span in self.spans]
        return np.asarray(close) / max(sum(close), 1e-9)


def fit_weights(cases: Sequence[Case], columns: Columns) -> tuple[float, ...]:
    """What these features weigh; the others weigh nothing."""
    from scipy.optimize import minimize

    width = np.vstack([case.rows for case in cases]).std(axis=0)[list(columns)] + 1e-9
    beds = [(case.rows[:, columns] / width, case.target) for case in cases if case.target.any()]

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        total, slope = PENALTY * float(weights @ weights) / 2, PENALTY * weights
        for rows, wanted in beds:
            odds = rows @ weights
            logs = odds - odds.max() - np.log(np.exp(odds - odds.max()).sum())
            total -= float(wanted @ logs)
            slope = slope - rows.T @ (wanted - np.exp(logs))
        return total, slope

    found = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B").x / width
    weights = dict(zip(columns, found, strict=True))
    return tuple(round(float(weights.get(column, 0.0)), 2) for column in ALL)


def cross_validated(cases: Sequence[Case], columns: Columns, seed: int | None = None) -> dict[str, str]:
    """The spans of each film, by the rule that the other films teach; with a seed, ties are broken by chance."""
    spans: dict[str, str] = {}
    for film in sorted({case.group[0].movie for case in cases}):
        rule = weigh_features(fit_weights([case for case in cases if case.group[0].movie != film], columns))
        score = rule if seed is None else shaken(rule, seed)
        spans |= choose_all([case for case in cases if case.group[0].movie == film], score)
    return spans


def shaken(rule: Score, seed: int) -> Score:
    """The rule, with less chance added than any two of its scores differ by."""
    chance = np.random.default_rng(seed)
    return lambda spans, dialogue: list(np.asarray(rule(spans, dialogue)) + 1e-6 * chance.random(len(spans)))


def choose_all(cases: Sequence[Case], score: Score) -> dict[str, str]:
    pairs = [zip(case.group, choose_spans(case.group, score), strict=True) for case in cases]
    return {dialogue.id: span.text for pair in pairs for dialogue, span in pair}


def best(case: Case) -> Score:
    return lambda spans, dialogue: list(case.target)


def print_row(name: str, runs: Sequence[Mapping[str, str]], topics: RcdTopics) -> None:
    """The means over some runs."""
    scores = [measure_spans(name, spans, topics) for spans in runs]
    cells = [f"{mean(run.mean(measure) for run in scores):.3f}" for measure in SPAN_MEASURES]
    print(f"| {name:36} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("topics", type=Path)
    parser.add_argument("--fit", action="store_true", help="print the rule learned from all topics, too")
    options = parser.parse_args()
    topics = read_topics(options.topics)
    cases = [Case(group, tuple(topics.references[topic.id] for topic in group)) for group in topics.groups()]
    print(f"{len(cases)} groups, {sum(len(case.spans) for case in cases) / len(cases):.0f} candidates each\n")
    print(f"| {'':36} | {' | '.join(SPAN_MEASURES)} |\n|---|---|---|")
    table(cases, topics)
    if options.fit:
        print(f"\nRULE = weigh_features({fit_weights(cases, ALL)})")


def table(cases: Sequence[Case], topics: RcdTopics) -> None:
    perfect = {id: span for case in cases for id, span in choose_all([case], best(case)).items()}
    print_row("the best candidate (with the titles)", [perfect], topics)
    print_row("the rule", [cross_validated(cases, ALL)], topics)
    print_row(
        f"the rule, ties by chance ({SEEDS} seeds)", [cross_validated(cases, ALL, n) for n in range(SEEDS)], topics
    )
    position = {"middle", "distance"}
    print_row("without the position", [cross_validated(cases, without(position))], topics)
    print_row("the position alone", [cross_validated(cases, without(set(FEATURES) - position))], topics)
    for name in FEATURES:
        print_row(f"without {name!r}", [cross_validated(cases, without({name}))], topics)


def without(names: Set[str]) -> Columns:
    return tuple(column for column in ALL if FEATURES[column] not in names)


if __name__ == "__main__":
    main()
