"""What differs between processors: the examples answered as they are, and under simulated ones (tests/hooks/jitter.py).

    python benchmarks/jitter.py [--jitters 10] [--model M] [--topics TOPICS --index INDEX [--every 4]]

The examples are the fifteen turns of `examples/topics.json` and the questions over `examples/documents` of
`tests/cases/document_questions.json`. Compared with the unjittered answer, over all turns and jitters: how often the
first cited sentence is another one, how much of the first ten passages is the same; and in how many answers the
asked-for fact stands, anywhere or in the first sentence. With topics and an index, nDCG@5 by the topics' own passages,
too.
"""

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.chat.session import PLAN
from agent.evaluation.scores import measure_search
from agent.flow import Tools, answer_topic
from agent.models.protocol import LanguageModel, ignore_call
from agent.models.registry import find_gguf, open_embedder, open_model
from agent.tracks.files import read_topics
from agent.tracks.registry import load_edition
from agent.turn.retrieval import Searcher
from indexes.corpora.corpus import find_corpus
from indexes.documents.document_index import open_documents
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from indexes.ranking.vectors import Embedder
from schemas.records import Plan, Topic, Turn, TurnResult
from tests.hooks import jitter

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True, slots=True)
class Question:
    """A question over the example documents, and the words that an answer must have."""

    ask: str
    fact: str


def open_bare(name: str) -> LanguageModel:
    """A model without a cache of replies, which would not know one processor from another."""
    if name != "smollm2":
        return open_model(name)
    return find_gguf(name, None)[0](ignore_call)


def answer(
    topics: Sequence[Topic], llm: LanguageModel, index: PassageIndex, embedder: Embedder | None, plan: Plan
) -> list[TurnResult]:
    """All turns of some topics."""
    retriever = open_retriever(index, embedder, plan)
    searcher = Searcher(retriever, plan)
    tools = Tools(llm, searcher.search, searcher.read, plan, embedder)
    return [answered for topic in topics for answered in answer_topic(topic, tools)]


def first_cited(answered: TurnResult) -> str:
    return next((sentence.text for sentence in answered.response.sentences if sentence.passage_ids), "")


def overlap(one: TurnResult, other: TurnResult) -> float:
    """Share of the first ten passages that both have."""
    mine, theirs = ({hit.id for hit in answered.hits[:10]} for answered in (one, other))
    return len(mine & theirs) / max(1, len(mine))


def facts(answers: Sequence[TurnResult], questions: Sequence[Question]) -> tuple[int, int]:
    """In how many answers the fact stands: anywhere, and in the first cited sentence."""
    pairs = list(zip(answers, questions, strict=True))
    anywhere = sum(question.fact in answered.response.text for answered, question in pairs)
    return anywhere, sum(question.fact in first_cited(answered) for answered, question in pairs)


def under_jitters(run: Any, count: int) -> Iterator[list[TurnResult]]:
    """What `run` answers as it is, then under each jitter."""
    for seed in range(count + 1):
        os.environ["JITTER"] = str(seed)
        yield run()
    os.environ["JITTER"] = "0"


def compare(name: str, runs: Sequence[list[TurnResult]]) -> None:
    plain, *jittered = runs
    pairs = [pair for run in jittered for pair in zip(plain, run, strict=True)]
    changed = statistics.mean(first_cited(one) != first_cited(other) for one, other in pairs)
    same = statistics.mean(overlap(one, other) for one, other in pairs)
    texts = statistics.mean(one.response.text != other.response.text for one, other in pairs)
    print(f"{name}: {len(plain)} turns, {len(jittered)} jitters: first cited sentence changed {changed:.1%}, ", end="")
    print(f"any word of the answer {texts:.1%}; overlap of the top ten {same:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jitters", type=int, default=10)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--topics", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--every", type=int, default=4, help="every n-th conversation")
    parser.add_argument("--verbose", action="store_true", help="print every answer")
    asked = parser.parse_args()
    jitter.install()
    llm, embedder = open_bare(asked.model), open_embedder(None)
    with tempfile.TemporaryDirectory() as cache:
        on_documents(asked, llm, embedder, Path(cache))
        build_index(
            find_corpus([EXAMPLES / "passages.jsonl"]),
            Path(cache) / "index",
            skip_problems=False,
            progress=lambda: None,
        )
        topics = read_topics(EXAMPLES / "topics.json")
        index = PassageIndex(Path(cache) / "index")
        plan = Plan(min_probability=load_edition(topics.edition).statement_threshold)
        runs = list(under_jitters(lambda: answer(topics.topics, llm, index, embedder, plan), asked.jitters))
        compare("examples/topics.json", runs)
    if asked.topics and asked.index:
        on_topics(asked, llm, embedder)


def on_documents(asked: argparse.Namespace, llm: LanguageModel, embedder: Embedder | None, cache: Path) -> None:
    raw = json.loads((ROOT / "tests" / "cases" / "document_questions.json").read_text())
    questions = [Question(case["ask"], case["fact"]) for case in raw]
    topics = [Topic(str(n), (), (Turn(f"{n}_1", question.ask, ()),)) for n, question in enumerate(questions)]
    index = open_documents(
        EXAMPLES / "documents", cache, embedder, lambda _doing, _of: nullcontext(lambda _done: None)
    ).index
    runs = list(under_jitters(lambda: answer(topics, llm, index, embedder, PLAN), asked.jitters))
    compare("examples/documents", runs)
    found = [facts(run, questions) for run in runs]
    print(f"  fact in the answer, of {len(questions)}: {[anywhere for anywhere, _ in found]}")
    print(f"  in its first sentence: {[first for _, first in found]}")
    for answered, question in zip(runs[0], questions, strict=True):
        if asked.verbose or question.fact not in answered.response.text:
            print(f"  {question.ask} [{question.fact}]\n    {answered.response.text}")


def on_topics(asked: argparse.Namespace, llm: LanguageModel, embedder: Embedder | None) -> None:
    topics = read_topics(asked.topics)
    some, index, plan = (
        topics.topics[:: asked.every],
        PassageIndex(asked.index),
        Plan(min_probability=load_edition(topics.edition).statement_threshold),
    )
    gold = {id: dict.fromkeys(labels.passage_ids, 1) for id, labels in topics.labels.items()}
    gold = {turn.id: gold[turn.id] for topic in some for turn in topic.turns if any(p in index for p in gold[turn.id])}
    runs = list(under_jitters(lambda: answer(some, llm, index, embedder, plan), asked.jitters))
    compare(str(asked.topics.name), runs)
    scores = [measure_search("", {a.turn_id: {hit.id: hit.score for hit in a.hits} for a in run}, gold) for run in runs]
    print("  nDCG@5:", [round(score.mean("nDCG@5"), 3) for score in scores])


if __name__ == "__main__":
    main()
