"""Touché: what each way of ranking is worth, one after the other, and the default without each.

    python benchmarks/touche_quality.py [INPUT --qrels RELEVANCE --quality-qrels QUALITY]

INPUT is a directory as `convagent touche` takes it; without one it is `examples/touche`, which is of our own writing
and small: its figures show that the parts do what they should, not what they are worth on args.me.
"""

import argparse
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from agent.measures.touche import MEASURES, QUALITY, RELEVANCE, measured, read_labels
from agent.touche import Task, queries, ranked_for
from agent.touche.ranking import Ways
from agent.touche.topics import read_questions
from indexes.arguments import Arguments, find_arguments

EXAMPLE = Path(__file__).parent.parent / "examples" / "touche"
WORDS = Ways(likelihood=False, conclusion=False, short=False, quality=False)
ROWS = {
    "BM25 of Tantivy": WORDS,
    "Dirichlet": replace(WORDS, likelihood=True),
    "+ conclusion": replace(WORDS, likelihood=True, conclusion=True),
    "+ short pushed down": Ways(quality=False),
    "+ quality: the default": Ways(),
    "default without conclusion": Ways(conclusion=False),
    "default without short": Ways(short=False),
    "Dirichlet + short": Ways(conclusion=False, quality=False),
    "Dirichlet + quality": Ways(conclusion=False, short=False),
}


def silent(_arguments: Arguments) -> AbstractContextManager[Callable[[], None]]:
    """No bar."""
    return nullcontext(lambda: None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("input", type=Path, nargs="?", default=EXAMPLE)
    parser.add_argument("--qrels", type=Path, default=EXAMPLE / "relevance.qrels")
    parser.add_argument("--quality-qrels", type=Path, default=EXAMPLE / "quality.qrels")
    given = parser.parse_args()
    labels = {RELEVANCE: read_labels(given.qrels), QUALITY: read_labels(given.quality_qrels)}
    asked = queries(read_questions(given.input / "topics.xml"), None)
    print(f"| {'':26} | {' | '.join(MEASURES)} |\n|---|---|---|")
    for name, ways in ROWS.items():
        with tempfile.TemporaryDirectory() as place:
            task = Task(given.input, ways, skip_problems=True)
            found = ranked_for(asked, find_arguments(given.input), task, Path(place) / "index", silent).hits
        ranked = {number: {hit.id: hit.score for hit in hits} for number, hits in found.items()}
        scores = measured(name, ranked, labels)
        print(f"| {name:26} | {' | '.join(f'{scores.mean(measure):.3f}' for measure in MEASURES)} |", flush=True)


if __name__ == "__main__":
    main()
