"""How rough a judge without a server is: its verdicts on what people selected and wrote for ClapNQ's questions.

    python -m benchmarks.rough_judges ../shared/data/clapnq/questions.jsonl [--judge minilm] [--limit N]

Nuggets are the sentences of a passage, the answer is what somebody wrote from those of them that they selected: those
are in it, the others are not. Every second question chose MiniLM's cut-offs (`--fit` prints
what is best on them); the figures are of the others.
"""

import argparse
import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agent.evaluation.nuggets import JudgedAnswer, Nugget, judge_answer, measure_similarity, open_nugget_judge
from agent.models.registry import open_embedder
from indexes.index_vectors import cache_vectors

STEPS = [step / 100 for step in range(30, 96, 5)]


@dataclass(frozen=True, slots=True)
class Case:
    """An answer, what it is judged by, and what of that it holds."""

    query: str
    answer: str
    texts: tuple[str, ...]
    held: tuple[bool, ...]


def make_nugget_cases(rows: Sequence[dict[str, Any]]) -> list[Case]:
    """Sentences of five words and more, against the first answer."""
    cases = []
    for row in rows:
        if row["answerable"]:
            texts = tuple(sentence for sentence in row["sentences"] if len(sentence.split()) >= 5)
            held = tuple(text in row["selected"][0] for text in texts)
            cases.append(Case(row["question"], row["answers"][0], texts, held))
    return cases


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """Agreement of two judges beyond chance, from -1 to 1; 1 where all verdicts are equal, 0 without any verdict."""
    if not pairs:
        return 0.0
    count = len(pairs)
    equal = sum(one == other for one, other in pairs) / count
    left, right = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(left[label] * right[label] for label in left) / count**2
    return 1.0 if equal == 1.0 else (equal - chance) / (1 - chance)


def judge_cases(name: str, cases: Sequence[Case]) -> list[Any]:
    """The verdicts on all nuggets."""
    find_verdicts, _ = open_nugget_judge(name)
    answers = [JudgedAnswer("", tuple(map(Nugget, c.texts)), c.query, c.answer) for c in cases]
    return [nugget.verdict for answer in answers for nugget in judge_answer(answer, find_verdicts).nuggets]


def report(verdicts: Sequence[Any], held: Sequence[bool]) -> None:
    """Agreement, and which verdicts what is held and what is not got."""
    kappa = cohen_kappa([(verdict == "support", truth) for verdict, truth in zip(verdicts, held, strict=True)])
    print(f"{len(held)} judged, {sum(held)} held, kappa {kappa:.3f}")
    for truth in (True, False):
        found = Counter(str(verdict) for verdict, other in zip(verdicts, held, strict=True) if other is truth)
        shares = "  ".join(f"{verdict} {count / found.total():.0%}" for verdict, count in sorted(found.items()))
        print(f"  {'held' if truth else 'not held':9}{shares}")


def fit(cases: Sequence[Case]) -> None:
    """How well MiniLM's cosine tells what is held from what is not, and the cut-off of the greatest kappa."""
    from sklearn.metrics import roc_auc_score

    embedder = open_embedder("minilm")
    assert embedder is not None
    measure = partial(measure_similarity, cache_vectors(embedder).embed)
    pairs = [(s, h) for case in cases for s, h in zip(measure(case.answer, case.texts), case.held, strict=True)]
    best = max(STEPS, key=lambda step: cohen_kappa([(strength >= step, held) for strength, held in pairs]))
    area = roc_auc_score([held for _, held in pairs], [strength for strength, _ in pairs])
    print(f"AUC {area:.3f}, best cut-off {best}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--judge", default="minilm")
    parser.add_argument("--limit", type=int, help="cases")
    parser.add_argument("--fit", action="store_true")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.questions.read_text(encoding="utf-8").splitlines()]
    if given.fit:
        fit(make_nugget_cases(rows[::2])[: given.limit])
    cases = make_nugget_cases(rows[1::2])[: given.limit]
    report(judge_cases(given.judge, cases), [held for case in cases for held in case.held])


if __name__ == "__main__":
    main()
