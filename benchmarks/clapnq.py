"""Sentences that answer, beside those that people selected: ClapNQ's questions, each with its passage.

    python benchmarks/clapnq.py QUESTIONS.jsonl [--model M] [--every N] [--json FILE]

300 questions have an answer in their passage, and sentences of it that annotators selected (those of any of them
count); 300 have none. Each is answered from its passage alone, as in a run. ClapNQ cuts sentences otherwise than this
program: a text is taken for every sentence with which it shares at least `SAME` of the shorter one's words.

first selected: the first sentence that an answer quotes is one that people selected. selected quoted: of all the
sentences that people selected. nDCG@3: of the ranking of sentences. told: answers that say that the passage holds
none, as the program does it, and by the same score where 6 % of the answerable may be told so wrongly.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from agent.evaluation.scores import ranking_measures
from agent.models.protocol import LanguageModel
from agent.models.registry import open_embedder, open_model
from agent.turn.extractive_answer import says_not_found
from agent.turn.quote_ranking import rank_quotes
from agent.turn.quotes import find_quotes
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.responses import generate_responses
from benchmarks.answerability import area_under_curve, judge_passages, share_told
from indexes.index_vectors import cache_vectors
from indexes.ranking.vectors import Embedder
from schemas.records import Passage, Plan, Query

SAME = 0.8
WORD = re.compile(r"\w+")
MEASURE = "nDCG@3"
PLAN = Plan()


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command line."""

    data: Path
    model: str = "none"
    every: int = 1
    json: Path | None = None


class Question(msgspec.Struct, frozen=True):
    """A line of the file."""

    id: str
    question: str
    title: str
    sentences: tuple[str, ...]
    answerable: bool
    selected: tuple[tuple[str, ...], ...]  # by annotator

    @property
    def passage(self) -> Passage:
        return Passage(self.id, " ".join(self.sentences), self.title)

    def places_selected(self) -> frozenset[int]:
        """Of the sentences that any annotator selected."""
        return find_sentences([text for texts in self.selected for text in texts], self.sentences)


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a question. Sentences are places in its passage, from 0."""

    id: str
    selected: tuple[int, ...]
    first: tuple[int, ...]  # sentences of the first quotation
    quoted: tuple[int, ...]
    ranked: tuple[int, ...]  # best first
    told: bool  # that the passage holds no answer
    answerability: float
    text: str


def read_questions(path: Path, every: int = 1) -> list[Question]:
    """Every n-th of the answerable questions, and of the others."""
    found = [msgspec.json.decode(line, type=Question) for line in path.read_bytes().splitlines()]
    return [question for kind in (True, False) for question in [q for q in found if q.answerable is kind][::every]]


def find_sentences(texts: Iterable[str], sentences: Sequence[str]) -> frozenset[int]:
    """The places of the sentences that any of the texts is, wholly or in part."""
    return frozenset(place for text in texts for place, sentence in enumerate(sentences) if is_same(text, sentence))


def is_same(text: str, sentence: str) -> bool:
    """Whether two texts share nearly all words of the shorter one, wherever they were cut."""
    one, other = (Counter(WORD.findall(each.lower())) for each in (text, sentence))
    shorter = min(one.total(), other.total())
    return shorter > 0 and (one & other).total() >= SAME * shorter


def answer(question: Question, llm: LanguageModel, embedder: Embedder) -> Answered:
    """A question answered from its passage."""
    passages, query = (question.passage,), Query(question.question)
    response = generate_responses(query, (), passages, Writer(llm), embedder, PLAN)[0]
    quoted = [sentence.text for sentence in response.sentences if sentence.passage_ids]
    quotes = find_quotes(passages, PLAN.tuning.answer)
    ranked = rank_quotes(quotes, query, (), embedder, PLAN.tuning)[0] if quotes else []
    places = (sorted(find_sentences([quote.lead], question.sentences)) for quote in ranked)
    return Answered(
        question.id,
        tuple(sorted(question.places_selected())),
        tuple(sorted(find_sentences(quoted[:1], question.sentences))),
        tuple(sorted(find_sentences(quoted, question.sentences))),
        tuple(dict.fromkeys(place for found in places for place in found)),
        says_not_found(response),
        judge_passages(passages, query, embedder, PLAN.tuning),
        response.text,
    )


def measure(answerable: Sequence[Answered], unanswerable: Sequence[Answered]) -> dict[str, float]:
    """The columns of the table."""
    scores, others = ([one.answerability for one in half] for half in (answerable, unanswerable))
    told, wrongly = share_told(scores, others)
    selected = sum(len(one.selected) for one in answerable)
    return {
        "first selected": mean(not set(one.first).isdisjoint(one.selected) for one in answerable),
        "selected quoted": sum(len(set(one.quoted) & set(one.selected)) for one in answerable) / selected,
        MEASURE: mean(measure_rankings(answerable)),
        "told": mean(one.told for one in unanswerable),
        "wrongly": mean(one.told for one in answerable),
        "told at 6 %": told,
        "wrongly at 6 %": wrongly,
        "AUC": area_under_curve(scores, others),
        "words": mean(len(one.text.split()) for one in answerable),
    }


def measure_rankings(answered: Sequence[Answered]) -> Iterator[float]:
    """nDCG@3 of each question's sentences against those selected."""
    ranked = {one.id: {str(place): 1.0 / n for n, place in enumerate(one.ranked, start=1)} for one in answered}
    judged = {one.id: {str(place): 1 for place in one.selected} for one in answered}
    for measures in ranking_measures((MEASURE,), ranked, judged).values():
        yield measures[MEASURE]


def run(asked: Asked) -> tuple[list[Answered], dict[str, float]]:
    """Every question answered, and the table."""
    embedder, llm = open_embedder("minilm"), open_model(asked.model)
    assert embedder is not None
    questions, embedder = read_questions(asked.data, asked.every), cache_vectors(embedder)
    answered = [answer(question, llm, embedder) for question in questions]
    answerable = sum(question.answerable for question in questions)
    return answered, measure(answered[:answerable], answered[answerable:])


def parse_options(description: str | None, data: str) -> Asked:
    """The options of the command line; `data` names what is read."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar=data)
    parser.add_argument("--model", default="none")
    parser.add_argument("--every", type=int, default=1, help="every n-th question of each kind")
    parser.add_argument("--json", type=Path, help="write figures and all answers to this file")
    return Asked(**vars(parser.parse_args()))


def report(asked: Asked, table: Mapping[str, float], answered: Sequence[Any], seconds: float) -> None:
    """Print the table; write it with all answers (records) where that is wanted."""
    print(f"{len(answered)} questions, --model {asked.model}, {seconds / len(answered):.2f} seconds each\n")
    print(f"| {' | '.join(table)} |\n{'|---' * len(table)}|")
    print(f"| {' | '.join(f'{value:.3f}'.ljust(len(name)) for name, value in table.items())} |")
    if asked.json:
        written = {"model": asked.model, "every": asked.every, "table": table, "answers": list(map(asdict, answered))}
        asked.json.write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    asked = parse_options(__doc__, "QUESTIONS.jsonl")
    started = time.perf_counter()
    answered, table = run(asked)
    report(asked, table, answered, time.perf_counter() - started)


if __name__ == "__main__":
    main()
