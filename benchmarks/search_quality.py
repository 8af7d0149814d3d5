"""The parts of a query one by one: beside the utterance, and beside the default.

    python benchmarks/search_quality.py TOPICS INDEX [--model M] [--seeds 0,1,2] [--half]

Gold are the topics' own passages that are in the index; a row is a mean over the turns that have one. Every row
searches as `convagent answer` does, with the parts it names. What a row costs a turn are the tokens that the model read
and wrote for its parts, and the seconds of model and search, on this machine; the conversation itself is read by the
first step. An answer is sampled for each seed; a row with one is the mean over the
seeds, with the standard deviation after it. What the default is worth beside `--model none`, words alone and the human
rewrite, `python -m benchmarks ikat` measures.
"""

import argparse
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import prompts
from agent.evaluation.scores import Scores, measure_search
from agent.models.protocol import Conversation, LanguageModel
from agent.models.registry import open_embedder, open_model
from agent.tracks.files import read_topics
from agent.tracks.registry import load_edition
from agent.turn.query_rewriting import rewrite_query
from agent.turn.retrieval import Searcher
from agent.turn.statement_selection import select_statements
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from indexes.ranking.vectors import Embedder, EncodeTurn
from schemas.records import Call, Message, Plan, Query, ScoredStatement, Topics

SHOWN = ("nDCG@5", "R@10", "R@100")
DEFAULT = Plan()
UNHEARD = Conversation("", ())


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model made of a turn, with an answer for each seed, and what each step of it cost."""

    query: Query
    selected_statements: tuple[ScoredStatement, ...] = ()
    calls: tuple[Call, ...] = ()
    conversation: Conversation = UNHEARD


@dataclass(frozen=True, slots=True)
class Bed:
    """What is searched, and for what."""

    topics: Topics
    index: PassageIndex
    embedder: Embedder | None
    gold: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Row:
    """One way to search: which parts, with or without the embedding model."""

    name: str
    plan: Plan
    meaning: bool = False
    steps: tuple[str, ...] = ()  # of the model, that it costs
    fused: bool = False  # the answers of all seeds at once
    words: bool = True  # whether what the utterance refers to joins its words
    vector: bool = True  # whether the taught encoder's vector is searched with


def ask(
    bed: Bed, llm: LanguageModel, calls: list[Call], seeds: Sequence[int], encode_turn: EncodeTurn | None = None
) -> dict[str, Asked]:
    """Every part that any row wants, for every turn with gold passages."""
    system = prompts.render("system").instruction
    plan = replace(DEFAULT, min_probability=load_edition(bed.topics.edition).statement_threshold)
    embed = bed.embedder.embed if bed.embedder else None
    asked = {}
    for topic in bed.topics.topics:
        for turn in topic.turns:
            if turn.id in bed.gold:
                history = (*(turn.history or ()), Message("user", turn.utterance))
                conversation = Conversation(system, history)
                plans = [replace(DEFAULT, seed=seed, query=("hyde",)) for seed in seeds]
                answers = [
                    answer for plan in plans for answer in rewrite_query(conversation, llm, plan).hypothetical_answers
                ]
                query = rewrite_query(conversation, llm, DEFAULT, encode_turn=encode_turn)
                selected_statements = select_statements(conversation, query, topic.ptkb, llm, embed, plan)
                query = replace(query, hypothetical_answers=tuple(answers))
                asked[turn.id] = Asked(query, selected_statements, tuple(calls), conversation)
                calls.clear()
    return asked


def only(query: Query, row: Row, seed: int | None) -> Query:
    """The query with nothing but the parts of a row, and the answer of one seed; with all of them for None."""
    if "context" not in row.plan.query or not row.words:
        query = replace(query, context=())
    if "context" not in row.plan.query or not row.vector:
        query = replace(query, encoded_text="")
    if "rewrite" not in row.plan.query:
        query = replace(query, rewrite="")
    if "hyde" not in row.plan.query:
        return replace(query, hypothetical_answers=())
    return query if seed is None else replace(query, hypothetical_answers=query.hypothetical_answers[seed : seed + 1])


def search_all(
    bed: Bed, llm: LanguageModel, asked: Mapping[str, Asked], row: Row, seed: int | None
) -> tuple[Scores, float]:
    """The measures of a row, and the seconds that its searches take a turn."""
    retriever = open_retriever(bed.index, bed.embedder if row.meaning else None, row.plan)
    searcher = Searcher(retriever, row.plan)
    started = time.perf_counter()
    found = {id: searcher.search(only(turn.query, row, seed)) for id, turn in asked.items()}
    seconds = (time.perf_counter() - started) / len(asked)
    scores = {id: {hit.id: hit.score for hit in hits} for id, hits in found.items()}
    return measure_search(row.name, scores, bed.gold), seconds


def costs(asked: Mapping[str, Asked], row: Row) -> tuple[float, float, float]:
    """Tokens read, tokens written and seconds a turn, of the steps that a row needs."""
    calls = [call for turn in asked.values() for call in _needed_calls(turn.calls, row)]
    n = len(asked)
    read, written = sum(call.tokens_read for call in calls), sum(call.tokens_written for call in calls)
    return read / n, written / n, sum(call.seconds for call in calls) / n


def _needed_calls(calls: Iterable[Call], row: Row) -> Iterator[Call]:
    imagined = 0
    for call in calls:
        imagined += call.step == "hyde"
        if call.step in row.steps and (call.step != "hyde" or row.fused or imagined == 1):
            yield call


def print_row(bed: Bed, llm: LanguageModel, asked: Mapping[str, Asked], row: Row, seeds: int = 1) -> None:
    """A line of the table: searched once for each seed's answer, unless they are fused or it has none."""
    numbers = [None] if row.fused or "hyde" not in row.steps else list(range(seeds))
    results = [search_all(bed, llm, asked, row, number) for number in numbers]
    cells = []
    for measure in SHOWN:
        values = [scores.mean(measure) for scores, _ in results]
        spread = f" ±{statistics.stdev(values):.3f}" if len(values) > 1 else ""
        cells.append(f"{statistics.mean(values):.3f}{spread}".ljust(12))
    read, written, seconds = costs(asked, row)
    seconds += statistics.mean(spent for _, spent in results)
    print(f"| {row.name:52} | {' | '.join(cells)} | {read:6.0f} | {written:5.0f} | {seconds:6.2f} |", flush=True)


def rows() -> list[Row]:
    """The ladder: every part on its own beside the person's words, then together."""
    answer, rewrite = ("hyde",), ("call",)
    raw = replace(DEFAULT, query=())
    return [
        Row("raw utterance, with MiniLM", raw, meaning=True),
        Row("+ previous reply", replace(raw, query=("previous",)), meaning=True),
        Row("+ words by the encoder", replace(raw, query=("context",)), meaning=True, vector=False),
        Row("+ vector by the encoder", replace(raw, query=("context",)), meaning=True, words=False),
        Row("+ rewrite", replace(raw, query=("rewrite",)), meaning=True, steps=rewrite),
        Row("+ hypothetical answer", replace(raw, query=("hyde",)), meaning=True, steps=answer),
        Row("words, vector, previous reply", replace(DEFAULT, query=("context", "previous")), meaning=True),
        Row("and the rewrite: the default", DEFAULT, meaning=True, steps=rewrite),
        Row(
            "default and hypothetical answer",
            replace(DEFAULT, query=(*DEFAULT.query, "hyde")),
            meaning=True,
            steps=(*rewrite, *answer),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("topics", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seeds", default="0,1,2", type=lambda text: [int(seed) for seed in text.split(",")])
    parser.add_argument("--half", action="store_true", help="every second conversation")
    options = parser.parse_args()
    topics, index = read_topics(options.topics), PassageIndex(options.index)
    topics = replace(topics, topics=topics.topics[:: 2 if options.half else 1])
    judged = {id: topics.labels[id].passage_ids for id in topics.turn_ids()}
    known = {id: {passage: 1 for passage in found if passage in index} for id, found in judged.items()}
    bed = Bed(topics, index, open_embedder(None), {id: found for id, found in known.items() if found})
    print(f"{len(bed.gold)} turns with gold passages, {len(index)} passages, {options.model}, seeds {options.seeds}\n")
    print(f"| {'query':52} | {'nDCG@5':12} | {'R@10':12} | {'R@100':12} |   read | wrote |  sec |")
    print("|---|---|---|---|---|---|---|")
    ladder(bed, options.model, options.seeds)


def ladder(bed: Bed, model: str, seeds: list[int]) -> None:
    """Every row; the model is asked once, and the rows share what it said."""
    encode_turn = bed.embedder.encode_turn if bed.embedder else None
    unread: list[Call] = []
    none = open_model("none", unread.append)
    print_row(bed, none, ask(bed, none, unread, ()), Row("--model none, without the encoder", DEFAULT, meaning=True))
    calls: list[Call] = []
    llm = open_model(model, calls.append)
    asked = ask(bed, llm, calls, seeds, encode_turn)
    for row in rows():
        print_row(bed, llm, asked, row, len(seeds))


if __name__ == "__main__":
    main()
