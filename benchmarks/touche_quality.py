"""Touché: what each way of ranking is worth, alone and with the others.

    python benchmarks/touche_quality.py [INPUT --qrels RELEVANCE --quality-qrels QUALITY]

INPUT is a directory as `convagent touche` takes it; without one it is `examples/touche`, which is of our own writing
and small: its figures show that the parts do what they should, not what they are worth on args.me.
"""

import argparse
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from agent.tasks.touche.measures import MEASURES, QUALITY, RELEVANCE, measure_touche, read_labels
from agent.tasks.touche.ranking import RankingOptions
from agent.tasks.touche.run import ToucheTask, make_queries, rank_topics
from agent.tasks.touche.topics import read_questions
from indexes.corpora.args_me import ArgumentCorpus, find_arguments

EXAMPLE = Path(__file__).parent.parent / "examples" / "touche"
ROWS = {
    "BM25 of Tantivy": RankingOptions(likelihood=False),
    "Dirichlet: the default": RankingOptions(),
    "--conclusion": RankingOptions(conclusion=True),
    "--short": RankingOptions(short=True),
    "--quality": RankingOptions(quality=True),
    "--conclusion --short": RankingOptions(conclusion=True, short=True),
    "--conclusion --quality": RankingOptions(conclusion=True, quality=True),
    "--short --quality": RankingOptions(short=True, quality=True),
    "all three": RankingOptions(conclusion=True, short=True, quality=True),
}


def silent(_arguments: ArgumentCorpus) -> AbstractContextManager[Callable[[], None]]:
    """No bar."""
    return nullcontext(lambda: None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("input", type=Path, nargs="?", default=EXAMPLE)
    parser.add_argument("--qrels", type=Path, default=EXAMPLE / "relevance.qrels")
    parser.add_argument("--quality-qrels", type=Path, default=EXAMPLE / "quality.qrels")
    given = parser.parse_args()
    labels = {RELEVANCE: read_labels(given.qrels), QUALITY: read_labels(given.quality_qrels)}
    asked = make_queries(read_questions(given.input / "topics.xml"), None)
    print(f"| {'':26} | {' | '.join(MEASURES)} |\n|---|---|---|")
    for name, ways in ROWS.items():
        with tempfile.TemporaryDirectory() as place:
            task = ToucheTask(given.input, ways, skip_problems=True)
            found = rank_topics(asked, find_arguments(given.input), task, Path(place) / "index", silent).hits
        ranked = {number: {hit.id: hit.score for hit in hits} for number, hits in found.items()}
        scores = measure_touche(name, ranked, labels)
        print(f"| {name:26} | {' | '.join(f'{scores.mean(measure):.3f}' for measure in MEASURES)} |", flush=True)


if __name__ == "__main__":
    main()
