"""How well personal statements are chosen: at random, by word overlap, by asking, by likelihood, by meaning, by both.

    python benchmarks/ptkb_quality.py TOPICS --qrels LABELS [--qrels LABELS] [--model M] [--fit]

`LABELS` judge turns for which some statement matters; TOPICS judge all turns by their own choice. Every rule is learned
from the labels of the other topics (leave one out). nDCG@3 is that of the ranking of all statements; macro F1 that of
the set chosen, `min_probability` 0 for the labels, 0 and `Plan().min_probability` for all turns. Tokens and seconds
are those of the selection alone, after a search has read the conversation. `--fit` prints the classifiers of
`schemas/tuning.py`.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

import prompts
from agent.evaluation.ptkb import set_measures
from agent.evaluation.scores import Qrels, ranking_measures, read_qrels, turns_with_relevant
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.models.registry import open_embedder, open_model
from agent.tracks.files import read_topics
from agent.turn.query_rewriting import rewrite_query
from agent.turn.statement_selection import (
    Numbers,
    add_margins,
    gather_evidence,
    predict_probabilities,
    select_by_expected_f1,
    speaks_of_oneself,
)
from indexes.ranking.vectors import Embedder
from schemas.errors import ModelReplyError
from schemas.records import Call, Message, Plan, Statement, Topics
from schemas.tuning import StatementClassifier

GAIN, COSINE = 0, 1  # columns of the evidence
SURE = Plan().min_probability
SEED = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """The evidence of every turn, a row a statement, and what a turn's cost."""

    evidence: Mapping[str, Numbers]
    read: float
    wrote: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Bed:
    """What is judged, and how. `ids` are the statements of a turn in the order of its evidence."""

    topics: Topics
    ids: Mapping[str, list[str]]
    judged: Mapping[str, Qrels]  # by name of the labels
    own: Qrels
    needed: Mapping[str, float]  # how likely any statement matters, learned from the other topics


def prepare(topics: Topics, qrels: Sequence[Path]) -> Bed:
    ids = {turn.id: [s.id for s in topic.ptkb] for topic in topics.topics for turn in topic.turns}
    judged = {path.name: {id: q for id, q in read_qrels(path).items() if id in ids} for path in qrels}
    own = {id: dict.fromkeys(labels.statement_ids, 1) for id, labels in topics.labels.items()}
    needed = {
        turn.id: share_needed(topics, own, speaks=speaks_of_oneself(turn.utterance), without=topic.id)
        for topic in topics.topics
        for turn in topic.turns
    }
    return Bed(topics, ids, judged, own, needed)


def share_needed(topics: Topics, own: Qrels, *, speaks: bool, without: str = "") -> float:
    """Of the turns that speak of the person, or of those that do not, but for one topic: how many need a statement."""
    turns = [turn for topic in topics.topics if topic.id != without for turn in topic.turns]
    return mean(bool(own[turn.id]) for turn in turns if speaks_of_oneself(turn.utterance) is speaks)


def each_turn(topics: Topics) -> Iterable[tuple[str, Conversation, tuple[Statement, ...]]]:
    system = prompts.render("system").instruction
    for topic in topics.topics:
        for turn in topic.turns:
            history = (*(turn.history or ()), Message("user", turn.utterance))
            yield turn.id, Conversation(system, history), topic.ptkb


def weigh_turns(topics: Topics, llm: LanguageModel, calls: list[Call], embedder: Embedder) -> Seen:
    """What the selection sees of every turn, with the rewrite that the search had made before it."""
    evidence, spent = {}, []
    for id, conversation, ptkb in each_turn(topics):
        query = rewrite_query(conversation, llm, Plan(), encode_turn=embedder.encode_turn)
        calls.clear()
        started = perf_counter()
        evidence[id] = gather_evidence(conversation, query, ptkb, llm, embedder.embed)
        spent.append((_read(calls), 0, perf_counter() - started))
    return Seen(evidence, *(mean(column) for column in zip(*spent, strict=True)))


def ask_for_choice(topics: Topics, llm: LanguageModel, calls: list[Call]) -> Seen:
    """What the model chooses when it is asked to, the statements enumerated: 1 for one that it names, else 0."""
    evidence, spent = {}, []
    for id, conversation, ptkb in each_turn(topics):
        rewrite_query(conversation, llm, Plan())
        calls.clear()
        started = perf_counter()
        named = ask(conversation, ptkb, llm)
        evidence[id] = np.asarray([[float(str(n) in named)] for n in range(1, len(ptkb) + 1)])
        written = sum(call.tokens_written for call in calls)
        spent.append((_read(calls), written, perf_counter() - started))
    return Seen(evidence, *(mean(column) for column in zip(*spent, strict=True)))


def ask(conversation: Conversation, ptkb: Sequence[Statement], llm: LanguageModel) -> list[str]:
    numbers = tuple(str(n) for n in range(1, len(ptkb) + 1))
    named = Annotated[list[Literal[numbers]], msgspec.Meta(max_length=len(ptkb))]  # type: ignore[valid-type]
    choice = msgspec.defstruct("Choice", [("statements", named)])
    listed = "\n".join(f"{n}. {statement.text}" for n, statement in zip(numbers, ptkb, strict=True))
    instruction = f"What you know about me:\n{listed}\nWhich of these matter for your answer? Give their numbers."
    try:
        reply: Any = llm.ask(conversation, Task("choose", instruction), choice)
    except ModelReplyError:
        return []
    return list(reply.statements)


def _read(calls: Sequence[Call]) -> int:
    return sum(call.tokens_read for call in calls)


def fit_classifier(evidence: Mapping[str, Numbers], bed: Bed, without: str = "") -> StatementClassifier:
    """A logistic regression (L2, C 1, on standardised features) over all labelled turns but those of one topic."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    turns = [
        (add_margins(evidence[id]), [levels.get(statement, 0) > 0 for statement in bed.ids[id]])
        for qrels in bed.judged.values()
        for id, levels in qrels.items()
        if topic_of(id) != without
    ]
    rows, truth = np.vstack([rows for rows, _ in turns]), np.concatenate([truth for _, truth in turns])
    scaler = StandardScaler().fit(rows)
    learned = LogisticRegression(C=1.0).fit(scaler.transform(rows), truth)
    weights = learned.coef_[0] / scaler.scale_
    constant = float(learned.intercept_[0] - weights @ scaler.mean_)
    return StatementClassifier(round(constant, 2), tuple(round(float(weight), 2) for weight in weights))


def cross_validated(evidence: Mapping[str, Numbers], bed: Bed) -> dict[str, list[float]]:
    """How likely each statement of each turn matters, by a rule that has not seen its topic."""
    rules = {topic.id: fit_classifier(evidence, bed, topic.id) for topic in bed.topics.topics}
    return {id: predict_probabilities(rules[topic_of(id)], found) for id, found in evidence.items()}


def topic_of(turn_id: str) -> str:
    return turn_id.rpartition("_")[0]


Likely = Mapping[str, Sequence[float]]
Choose = Callable[[Sequence[float], float], list[int]]  # by the least probability of the best


def macro_f1(likely: Likely, bed: Bed, qrels: Qrels, choose: Choose, min_probability: float = 0.0) -> float:
    sets = {id: {bed.ids[id][n]: 1.0 for n in choose(likely[id], min_probability / bed.needed[id])} for id in qrels}
    return mean(set_measures(sets[id], levels)["F1"] for id, levels in qrels.items())


def ndcg(likely: Likely, bed: Bed, qrels: Qrels) -> float:
    ranked = {id: dict(zip(bed.ids[id], likely[id], strict=True)) for id in qrels}
    found = ranking_measures(["nDCG@3"], ranked, turns_with_relevant(qrels))
    return mean(turn["nDCG@3"] for turn in found.values())


def name_evidence(likely: Sequence[float], _least: float) -> list[int]:
    """A set that stands already: what has 1."""
    return [n for n, p in enumerate(likely) if p == 1.0]


def at_random(ids: Mapping[str, list[str]]) -> dict[str, list[float]]:
    chance = np.random.default_rng(SEED)
    return {id: list(chance.random(len(found))) for id, found in ids.items()}


def first_two(likely: Sequence[float], _least: float) -> list[int]:
    return sorted(range(len(likely)), key=lambda n: -likely[n])[:2]


def print_row(name: str, likely: Likely, bed: Bed, seen: Seen | None, choose: Choose = select_by_expected_f1) -> None:
    """F1 and nDCG@3 by each labels, F1 over all turns by the topics' own choice, and the cost."""
    cells = []
    for qrels in bed.judged.values():
        ranked = f"{ndcg(likely, bed, qrels):.3f}" if any(map(any, likely.values())) else "-"
        cells += [f"{macro_f1(likely, bed, qrels, choose):.3f}", ranked]
    cells += [f"{macro_f1(likely, bed, bed.own, choose, least):.3f}" for least in (0.0, SURE)]
    cells += [f"{seen.read:.0f}", f"{seen.wrote:.0f}", f"{seen.seconds:.2f}"] if seen else ["0", "0", "0.00"]
    print(f"| {name:36} | {' | '.join(cells)} |", flush=True)


def columns(seen: Seen, *kinds: int) -> dict[str, Numbers]:
    return {id: found[:, kinds] for id, found in seen.evidence.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("topics", type=Path)
    parser.add_argument("--qrels", type=Path, action="append", required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--fit", action="store_true", help="print the rules learned from all topics, too")
    options = parser.parse_args()
    bed = prepare(read_topics(options.topics), options.qrels)
    embedder = open_embedder("minilm")
    assert embedder is not None
    calls: list[Call] = []
    without = weigh_turns(bed.topics, open_model("none", calls.append), calls, embedder)
    llm = open_model(options.model, calls.append)
    judged = weigh_turns(bed.topics, llm, calls, embedder)
    asked = ask_for_choice(bed.topics, llm, calls)
    print(
        ", ".join(f"{name}: {len(qrels)} turns" for name, qrels in bed.judged.items()), f"all: {len(bed.own)} turns\n"
    )
    heads = [f"{name} {measure}" for name in bed.judged for measure in ("F1", "nDCG@3")]
    print(f"| {'':36} | {' | '.join(heads)} | all F1 | all F1, sure {SURE} | read | wrote | sec |")
    print("|---" * (len(heads) + 6) + "|")
    table(bed, without, judged, asked)
    if options.fit:
        fit(bed, without, judged)


def table(bed: Bed, without: Seen, judged: Seen, asked: Seen) -> None:
    none = {id: [0.0] * len(found) for id, found in bed.ids.items()}
    print_row("always none", none, bed, None, lambda _likely, _least: [])
    print_row("two at random", at_random(bed.ids), bed, None, first_two)
    print_row("prompted choice", {id: list(e[:, 0]) for id, e in asked.evidence.items()}, bed, asked, name_evidence)
    for name, seen, kinds in ROWS:
        likely = cross_validated(columns(without if seen == "none" else judged, *kinds), bed)
        print_row(name, likely, bed, judged if seen == "model" and GAIN in kinds else without)


ROWS: tuple[tuple[str, Literal["none", "model"], tuple[int, ...]], ...] = (
    ("word overlap", "none", (GAIN,)),
    ("word overlap, MiniLM (--model none)", "none", (GAIN, COSINE)),
    ("likelihood", "model", (GAIN,)),
    ("MiniLM", "model", (COSINE,)),
    ("likelihood and MiniLM: the default", "model", (GAIN, COSINE)),
)


def fit(bed: Bed, without: Seen, judged: Seen) -> None:
    """The rules from all topics, and what each value of `sure` is worth, cross-validated."""
    print()
    for model, source in ((True, judged), (False, without)):
        for kinds in ((GAIN, COSINE), (GAIN,)):
            print(f"    {(model, len(kinds) == 2)}: {fit_classifier(columns(source, *kinds), bed)},")
    for speaks in (True, False):
        share = share_needed(bed.topics, bed.own, speaks=speaks)
        print(f"    needed where the turn {'speaks' if speaks else 'does not speak'} of the person: {share:.2f}")
    likely = cross_validated(columns(judged, GAIN, COSINE), bed)
    print("\n| sure | labels F1 | all F1 | mean of both |\n|---|---|---|---|")
    for least in (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5):
        of = [macro_f1(likely, bed, qrels, select_by_expected_f1, least) for qrels in (*bed.judged.values(), bed.own)]
        print(f"| {least} | {mean(of[:-1]):.3f} | {of[-1]:.3f} | {mean([mean(of[:-1]), of[-1]]):.3f} |")


if __name__ == "__main__":
    main()
