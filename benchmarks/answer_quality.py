"""Whether it is told when passages hold no answer: by the nearest sentence, with gold passages given and withheld.

    python benchmarks/answer_quality.py TOPICS INDEX [--model M] [--slow] [--plot FILE]

Over all turns with gold passages in the index: the cosine of the nearest sentence
(`agent/turn/extractive_answer.py`) below which an answer says so: wrongly, with the gold passages given; and rightly,
when they are withheld and the next best are shown, or when all passages of the subject are (topics of iKAT 2023 with
the same first number share one). `--plot` draws it for every threshold. Before it stand the simplest answer, the first
words of the first gold passage, and with `--slow` free writing by the model, at every third turn: ROUGE F with the
canonical reply, the share of sentences that a cited passage supports, words, and the share of answers that say the
passages have none. What the default is worth, `python -m benchmarks ikat` measures.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from time import perf_counter

from agent.evaluation.answers import rouge_f1, supported_share
from agent.flow import Tools, answer_turn_or_fall_back
from agent.models.protocol import LanguageModel
from agent.models.registry import open_embedder, open_model
from agent.tracks.files import read_topics
from agent.tracks.registry import load_edition
from agent.turn.answerability import nearest_cosine
from agent.turn.interface_sentences import starts_with_not_found, strip_not_found
from agent.turn.quotes import find_quotes
from agent.turn.retrieval import Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from indexes.ranking.vectors import Embed
from schemas.records import Hit, Passage, Plan, Provided, Query, Topic, Topics, Turn, TurnResult
from schemas.tuning import Tuning

FIRST = 80  # words of the first passage, the simplest answer
SHOWN = 5

TUNING = Tuning()


@dataclass(frozen=True, slots=True)
class Bed:
    """The turns that have gold passages in the index, and these passages, in the order of the topics file."""

    topics: Topics
    index: PassageIndex
    gold: Mapping[str, tuple[Hit, ...]]

    def turns(self) -> list[tuple[Topic, Turn]]:
        return [(topic, turn) for topic in self.topics.topics for turn in topic.turns if turn.id in self.gold]


def prepare(topics: Topics, index: PassageIndex) -> Bed:
    known = {
        id: tuple(dict.fromkeys(passage for passage in labels.passage_ids if passage in index))
        for id, labels in topics.labels.items()
    }
    return Bed(topics, index, {id: _hits(found) for id, found in known.items() if found})


def _hits(ids: Sequence[str]) -> tuple[Hit, ...]:
    return tuple(Hit(id, 1.0 / rank) for rank, id in enumerate(ids, start=1))


def tools_of(bed: Bed, llm: LanguageModel, embedder: str, plan: Plan) -> Tools:
    opened = open_embedder(embedder)
    retriever = open_retriever(bed.index, opened, plan)
    searcher = Searcher(retriever, plan)
    return Tools(llm, searcher.search, searcher.read, plan, opened)


def answer_all(bed: Bed, tools: Tools) -> tuple[list[TurnResult], float]:
    """Every turn answered from its gold passages, and the seconds that it took on average."""
    started = perf_counter()
    found = [
        answer_turn_or_fall_back(turn, turn.history or (), topic.ptkb, tools, Provided(hits=bed.gold[turn.id]))
        for topic, turn in bed.turns()
    ]
    return found, (perf_counter() - started) / len(found)


def print_row(bed: Bed, name: str, texts: Mapping[str, tuple[str, Sequence[Passage]]], seconds: float) -> None:
    """`texts` are the answer and the passages that it cites, by turn id."""
    replies = {id: bed.topics.labels[id].reply for id in texts}
    close = [rouge_f1(replies[id], strip_not_found(text)) for id, (text, _) in texts.items()]
    held = [supported_share(text, cited)["supported"] for text, cited in texts.values()]
    cells = [f"{mean(row[measure] for row in close):.3f}" for measure in ("ROUGE-1", "ROUGE-2", "ROUGE-L")]
    words = mean(len(text.split()) for text, _ in texts.values())
    absent = mean(starts_with_not_found(text) for text, _ in texts.values())
    print(
        f"| {name:44} | {' | '.join(cells)} | {mean(held):9.3f} | {words:5.0f} | {absent:.3f} | {seconds:5.2f} |",
        flush=True,
    )


def read_cited(found: Sequence[TurnResult]) -> dict[str, tuple[str, Sequence[Passage]]]:
    return {
        turn.turn_id: (turn.response.text, [p for p in turn.passages if p.id in turn.response.used]) for turn in found
    }


def first_words(bed: Bed) -> dict[str, tuple[str, Sequence[Passage]]]:
    passages = {id: bed.index.read([hits[0].id]) for id, hits in bed.gold.items()}
    return {id: (" ".join(found[0].text.split()[:FIRST]), found) for id, found in passages.items()}


def subjects(topics: Topics) -> dict[str, set[str]]:
    """The gold passages of each subject."""
    held: dict[str, set[str]] = {}
    for topic in topics.topics:
        for turn in topic.turns:
            held.setdefault(_subject(turn.id), set()).update(topics.labels[turn.id].passage_ids)
    return held


def _subject(turn_id: str) -> str:
    return turn_id.partition("-")[0]


Withheld = Callable[[str], set[str]]  # the passages that a turn, by its id, may not be shown


def nearness(bed: Bed, found: Sequence[TurnResult], tools: Tools, withheld: Withheld | None) -> list[float]:
    """The cosine of the nearest sentence of each turn's passages: the gold ones, or the best that are not withheld."""
    assert tools.embedder is not None
    cosines = []
    for turn in found:
        hits = bed.gold[turn.turn_id] if withheld is None else _others(turn.query, tools, withheld(turn.turn_id))
        cosines.append(_nearest(tools.read(hits[:SHOWN]), turn.query, tools.embedder.embed))
    return cosines


def _others(query: Query, tools: Tools, withheld: set[str]) -> tuple[Hit, ...]:
    return tuple(hit for hit in tools.search(query) if hit.id not in withheld)


def _nearest(passages: Sequence[Passage], query: Query, embed: Embed) -> float:
    quotes = find_quotes(passages, TUNING.answer)
    if not quotes:
        return 0.0
    return nearest_cosine(embed([quote.lead for quote in quotes]), query, embed, TUNING.query.lead_characters)


@dataclass(frozen=True, slots=True)
class Nearness:
    """The cosine of the nearest sentence, a number a turn: with the gold passages, without, without the subject's."""

    given: Sequence[float]
    next_best: Sequence[float]
    elsewhere: Sequence[float]

    def below(self, least: float) -> list[float]:
        """The share of turns at which an answer would say that it found none: wrongly, rightly, and rightly."""
        return [mean(cosine < least for cosine in cosines) for cosines in (self.given, self.next_best, self.elsewhere)]


def measure_nearness(bed: Bed, found: Sequence[TurnResult], tools: Tools) -> Nearness:
    gold = {id: {hit.id for hit in hits} for id, hits in bed.gold.items()}
    held = subjects(bed.topics)
    unclaimed = set(bed.index.get_ids(range(len(bed.index)))).difference(*held.values())  # they may be of any subject
    return Nearness(
        nearness(bed, found, tools, None),
        nearness(bed, found, tools, gold.__getitem__),
        nearness(bed, found, tools, lambda id: held[_subject(id)] | unclaimed),
    )


def print_not_found(near: Nearness) -> None:
    """What a threshold costs and brings."""
    print("\n| nearest below | said wrongly | rightly, gold withheld | rightly, subject withheld |\n|---|---|---|---|")
    for least in (0.25, 0.3, TUNING.answer.answerable_cosine, 0.375, 0.4, 0.425, 0.45, 0.5):
        print(f"| {least} | {' | '.join(f'{share:.3f}' for share in near.below(least))} |")


def plot_not_found(near: Nearness, path: Path) -> None:
    """The trade-off for every threshold, and where the default stands."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot(
        xlabel="said wrongly (gold passages given)", ylabel="said rightly", xlim=(0, 0.5), ylim=(0, 1)
    )
    wrongly, next_best, elsewhere = zip(*(near.below(step / 200) for step in range(201)), strict=True)
    axes.plot(wrongly, elsewhere, label="passages of other subjects shown")
    axes.plot(wrongly, next_best, label="next best passages shown")
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey", label="said at random")
    axes.axvline(0.1, linestyle="--", color="grey", linewidth=0.8)
    at, *right = near.below(TUNING.answer.answerable_cosine)
    axes.plot(
        [at, at], right, "o", color="black", label=f"the default: nearest below {TUNING.answer.answerable_cosine}"
    )
    axes.set_title('"I found no answer to this in the passages"')
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("topics", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--slow", action="store_true", help="free writing by the model, too")
    parser.add_argument("--plot", type=Path, help="a picture of the second table")
    options = parser.parse_args()
    bed = prepare(read_topics(options.topics), PassageIndex(options.index))
    plan = Plan(min_probability=load_edition(bed.topics.edition).statement_threshold)
    print(f"{len(bed.gold)} turns with gold passages, {options.model}\n")
    print(f"| {'answer':44} | ROUGE-1 | ROUGE-2 | ROUGE-L | supported | words | says none | seconds |")
    print("|---" * 8 + "|")
    print_row(bed, f"first {FIRST} words of the first passage", first_words(bed), 0.0)
    tools = tools_of(bed, open_model(options.model), "minilm", plan)
    found, seconds = answer_all(bed, tools)
    print_row(bed, "default: sentences selected", read_cited(found), seconds)
    if options.slow:
        third = replace(bed, gold={id: bed.gold[id] for id in list(bed.gold)[::3]})
        writing = replace(tools, plan=replace(plan, answer="write"))
        print_row(bed, f"written by the model ({len(third.gold)} turns)", *_row(third, writing))
    near = measure_nearness(bed, found, tools)
    print_not_found(near)
    if options.plot:
        plot_not_found(near, options.plot)


def _row(bed: Bed, tools: Tools) -> tuple[dict[str, tuple[str, Sequence[Passage]]], float]:
    found, seconds = answer_all(bed, tools)
    return read_cited(found), seconds


if __name__ == "__main__":
    main()
