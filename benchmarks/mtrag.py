"""Conversations of MTRAG-UN: what is found, what is answered, and whether it is told when there is no answer.

    python benchmarks/mtrag.py FOLDER [--model M] [--every N] [--json FILE]

FOLDER has `passages.jsonl` and `tasks_dev.jsonl`. Each task is a conversation whose last turn is answered as in a run.
Its kind: ANSWERABLE; PARTIAL, the passages have a part of the answer; UNANSWERABLE, the collection has none;
UNDERSPECIFIED, one should ask back. The index is kept in the temporary directory, for the next time.

nDCG@5: of the search, against the reference passages of what is answerable, wholly or in part; beside it that of BM25
for the bare utterance. ROUGE: F of answers from the reference passages with the reference answer. told: what has no
answer is told to have none, the passages searched for; wrongly: what has one. asked back: as with `--clarify`, where
the utterance is underspecified; wrongly: where it is ANSWERABLE.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Literal

import msgspec

from agent.evaluation.answers import rouge_f1
from agent.evaluation.search import measure_search
from agent.flow import Tools, answer_turn_or_fall_back
from agent.models.embedding.index_vectors import cache_vectors, embed_index
from agent.models.embedding.registry import open_embedder
from agent.models.registry import open_model
from agent.turn.clarification import is_clarification
from agent.turn.extractive_answer import says_not_found
from agent.turn.interface_sentences import strip_not_found
from agent.turn.open_retriever import open_retriever
from agent.turn.retrieval import Searcher
from benchmarks.answerability import area_under_curve, score_answerability, share_told
from benchmarks.report import Asked, parse_options, report
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.storage.files import hash_file
from schemas.records import Hit, Message, Plan, Provided, Query, Turn, TurnResult

PLAN = Plan(k=100)
MEASURE = "nDCG@5"
Kind = Literal["ANSWERABLE", "PARTIAL", "UNANSWERABLE", "UNDERSPECIFIED"]
ANSWERABLE: tuple[Kind, ...] = ("ANSWERABLE", "PARTIAL")


class Said(msgspec.Struct, frozen=True):
    """A message of a conversation."""

    role: Literal["user", "assistant"]
    content: str


class Task(msgspec.Struct, frozen=True):
    """A line of the file: a conversation up to the utterance that is to be answered, and the reference answer."""

    id: str
    kind: Kind
    messages: tuple[Said, ...]
    target: str
    gold: tuple[str, ...]

    @property
    def turn(self) -> Turn:
        return Turn(self.id, self.messages[-1].content, self.history)

    @property
    def history(self) -> tuple[Message, ...]:
        return tuple(Message(said.role, said.content) for said in self.messages[:-1])


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a task."""

    id: str
    kind: Kind
    ranking: dict[str, float]
    told: bool  # that the passages found hold no answer
    asked: str  # what is asked back
    answerability: float
    text: str
    rouge: dict[str, float]  # of the answer from the reference passages; empty where it is not measured
    text_by_gold: str


def read_tasks(folder: Path, every: int = 1) -> list[Task]:
    """Every n-th conversation of each kind."""
    lines = (folder / "tasks_dev.jsonl").read_bytes().splitlines()
    tasks = [msgspec.json.decode(line, type=Task) for line in lines]
    kinds = dict.fromkeys(task.kind for task in tasks)
    return [task for kind in kinds for task in [each for each in tasks if each.kind == kind][::every]]


def open_index(passages: Path, embedder: Embedder) -> PassageIndex:
    """An index with vectors, made where there is none of this file and this embedding model yet."""
    name = f"convagent-mtrag-{hash_file(passages)[:12]}-{embedder.digest[:12]}"
    directory = Path(tempfile.gettempdir()) / name
    if not directory.exists():
        with tempfile.TemporaryDirectory(prefix=name) as building:
            made = Path(building) / "index"
            build_index(find_corpus([passages]), made, skip_problems=False, progress=lambda: None)
            embed_index(made, embedder, lambda _doing, _of: nullcontext(lambda _done: None))
            made.rename(directory)
    return PassageIndex(directory)


def open_tools(index: PassageIndex, embedder: Embedder, model: str) -> Tools:
    searcher = Searcher.over(open_retriever(index, embedder, PLAN), PLAN)
    return Tools(open_model(model), searcher.search, searcher.read, PLAN, embedder)


def answer(task: Task, tools: Tools) -> Answered:
    """A task answered from what is found, and where it has an answer, from the reference passages."""
    result = answer_turn_or_fall_back(task.turn, task.history, (), tools)
    assert tools.embedder is not None
    clarified = answer_turn_or_fall_back(task.turn, task.history, (), replace(tools, plan=replace(PLAN, clarify=True)))
    given = answer_from_gold(task, tools) if task.kind in ANSWERABLE and task.gold else None
    by_gold = strip_not_found(given.response.text) if given else ""
    return Answered(
        task.id,
        task.kind,
        {hit.id: hit.score for hit in result.hits},
        says_not_found(result.response) or not result.response.used,
        clarified.response.text if is_clarification(clarified.response.text) else "",
        score_answerability(result.passages, result.query, tools.embedder.embed, tools.plan.tuning),
        result.response.text,
        rouge_f1(task.target, by_gold) if given else {},
        by_gold,
    )


def answer_from_gold(task: Task, tools: Tools) -> TurnResult:
    hits = tuple(Hit(id, 1.0 / rank) for rank, id in enumerate(task.gold, start=1))
    return answer_turn_or_fall_back(task.turn, task.history, (), tools, Provided(hits=hits))


def measure_rankings(tasks: Sequence[Task], rankings: Mapping[str, Mapping[str, float]]) -> float:
    """The mean over the tasks that have an answer, and reference passages."""
    gold = {task.id: dict.fromkeys(task.gold, 1) for task in tasks if task.kind in ANSWERABLE and task.gold}
    return measure_search("", {id: rankings[id] for id in gold}, gold).mean(MEASURE)


def search_plainly(tasks: Sequence[Task], index: PassageIndex) -> dict[str, dict[str, float]]:
    """What BM25 finds for the bare utterance."""
    searcher = Searcher.over(open_retriever(index, None, PLAN), PLAN)
    found = {task.id: searcher.search(Query(task.turn.utterance)) for task in tasks}
    return {id: {hit.id: hit.score for hit in hits} for id, hits in found.items()}


def share_asked(answered: Sequence[Answered], kind: Kind) -> float:
    """The share of the tasks of a kind at which one asks back; 0 where there are none."""
    asked = [bool(one.asked) for one in answered if one.kind == kind]
    return mean(asked) if asked else 0.0


def measure(tasks: Sequence[Task], answered: Sequence[Answered], index: PassageIndex) -> dict[str, float]:
    """The columns of the table."""
    answerable = [one for one in answered if one.kind in ANSWERABLE]
    unanswerable = [one for one in answered if one.kind == "UNANSWERABLE"]
    scores, others = ([one.answerability for one in half] for half in (answerable, unanswerable))
    told, wrongly = share_told(scores, others)
    from_gold = [one for one in answerable if one.rouge]
    return {
        f"{MEASURE} BM25": measure_rankings(tasks, search_plainly(tasks, index)),
        MEASURE: measure_rankings(tasks, {one.id: one.ranking for one in answered}),
        "ROUGE-1": mean(one.rouge["ROUGE-1"] for one in from_gold),
        "ROUGE-L": mean(one.rouge["ROUGE-L"] for one in from_gold),
        "words": mean(len(one.text_by_gold.split()) for one in from_gold),
        "told": mean(one.told for one in unanswerable),
        "wrongly": mean(one.told for one in answerable),
        "told at 6 %": told,
        "wrongly at 6 %": wrongly,
        "AUC": area_under_curve(scores, others),
        "asked back": share_asked(answered, "UNDERSPECIFIED"),
        "asked wrongly": share_asked(answered, "ANSWERABLE"),
    }


def run(asked: Asked) -> tuple[list[Answered], dict[str, float]]:
    """Every task answered, and the table."""
    embedder = open_embedder("minilm")
    assert embedder is not None
    index, tasks = open_index(asked.data / "passages.jsonl", embedder), read_tasks(asked.data, asked.every)
    tools = open_tools(index, cache_vectors(embedder), asked.model)
    answered = [answer(task, tools) for task in tasks]
    return answered, measure(tasks, answered, index)


def main() -> None:
    asked = parse_options(__doc__, "FOLDER")
    started = time.perf_counter()
    answered, table = run(asked)
    report(asked, table, answered, time.perf_counter() - started)


if __name__ == "__main__":
    main()
