"""How well the searches of finished runs found the gold passages, beside the raw utterance and the human rewrite.

    python benchmarks/search_of_traces.py TOPICS INDEX TRACE...

Gold passages are those of the topics' `response_provenance` that are in the index; turns without any are left out.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from agent.trace import read_trace
from agent.tracks import read_topics
from indexes.passages import PassageIndex

Ranking = dict[str, list[str]]  # turn id -> passage ids, best first


def ndcg(found: Sequence[str], gold: set[str], k: int) -> float:
    """Binary nDCG at k."""
    ideal = sum(1 / math.log2(n + 2) for n in range(min(k, len(gold))))
    return sum(1 / math.log2(n + 2) for n, id in enumerate(found[:k]) if id in gold) / ideal


def recall(found: Sequence[str], gold: set[str], k: int) -> float:
    return len(gold & set(found[:k])) / len(gold)


def row(name: str, ranking: Ranking, gold: dict[str, set[str]]) -> str:
    def mean(measure: Callable[[Sequence[str], set[str], int], float], k: int) -> float:
        values = [measure(ranking[turn], gold[turn], k) for turn in gold]
        return sum(values) / len(values)

    return f"{name:40} nDCG@5 {mean(ndcg, 5):.3f}  R@10 {mean(recall, 10):.3f}  R@100 {mean(recall, 100):.3f}"


def main(topics_path: Path, index_path: Path, traces: Iterable[Path]) -> None:
    topics, index = read_topics(topics_path), PassageIndex(index_path)
    gold = {turn: {id for id in labels.passage_ids if id in index} for turn, labels in topics.labels.items()}
    gold = {turn: ids for turn, ids in gold.items() if ids}
    said = {turn.id: turn.utterance for topic in topics.topics for turn in topic.turns}
    resolved = {turn: labels.resolved for turn, labels in topics.labels.items()}

    def searched(queries: dict[str, str]) -> Ranking:
        return {turn: [hit.id for hit in index.search([(queries[turn], 1.0)], 100)] for turn in gold}

    print(f"{len(gold)} turns with gold passages")
    print(row("raw utterance, BM25", searched(said), gold))
    for path in traces:
        answered = (line.answered for line in read_trace(path).lines())
        print(row(path.name, {turn.turn_id: [hit.id for hit in turn.hits] for turn in answered}, gold))
    print(row("human rewrite, BM25", searched(resolved), gold))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
