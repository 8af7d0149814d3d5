"""The figures of MTRAG-UN by kind of question: what is answered, told to have no answer, and asked back."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Literal, get_args

from agent.evaluation.answerability import area_under_curve, score_answerability, share_told
from agent.evaluation.answers import rouge_f1
from agent.evaluation.bench.answering import AnsweredBed
from agent.evaluation.bench.bed import Bed
from agent.evaluation.bench.figures import Figures, make_table, measure_answers
from agent.evaluation.bench.systems import System
from agent.evaluation.bench.tables import Row, Table
from agent.evaluation.search import measure_search
from agent.models.embedding.index_vectors import cache_vectors
from agent.models.embedding.registry import open_embedder
from agent.turn.clarification import is_clarification
from agent.turn.extractive_answer import says_not_found
from agent.turn.interface_sentences import strip_not_found
from schemas.records import Plan, TurnResult

Kind = Literal["ANSWERABLE", "PARTIAL", "UNANSWERABLE", "UNDERSPECIFIED"]
Kinds = Mapping[str, Kind]  # by turn id
WITH_ANSWER: tuple[Kind, ...] = ("ANSWERABLE", "PARTIAL")
KIND_COLUMNS = ("conversations", "nDCG@5", "ROUGE-1", "told", "asked back")


@dataclass(frozen=True, slots=True)
class AnsweredTasks:
    """One system's runs: from what it finds, from the gold passages, and asking back."""

    found: AnsweredBed
    given: AnsweredBed
    clarified: AnsweredBed


def tabulate_given(bed: Bed, answered: Mapping[System, AnsweredTasks]) -> Table:
    """Answers from the gold passages."""
    about = (
        f"Answers: {len(bed.gold)} conversations that have one, from the gold passages, against the reference answer."
    )
    given = {system: tasks.given for system, tasks in answered.items()}
    return make_table("given", about, given, lambda run: measure_answers(bed, run, tuple(bed.gold)))


def tabulate_kinds(bed: Bed, kinds: Kinds, answered: Mapping[System, AnsweredTasks]) -> Table:
    """A row for each system and kind."""
    about = (
        "By kind: search, answers from what was found, those told to have no answer in the passages found, and those "
        "asked back with `--clarify`."
    )
    rows = [
        Row(f"{system.name}: {kind}", tasks.found.command, measure_kind(bed, ids, tasks))
        for system, tasks in answered.items()
        for kind in get_args(Kind)
        if (ids := [turn_id for turn_id, found in kinds.items() if found == kind])
    ]
    return Table("kinds", about, KIND_COLUMNS, tuple(rows))


def measure_kind(bed: Bed, turn_ids: list[str], tasks: AnsweredTasks) -> tuple[float | int | None, ...]:
    """The figures of `KIND_COLUMNS`; search and answers only where there are gold passages."""
    gold = {turn_id: bed.judged[turn_id] for turn_id in turn_ids if turn_id in bed.gold}
    turns, clarified = tasks.found.read_turns(), tasks.clarified.read_turns()
    rouge = [_measure_rouge(bed, turns[turn_id]) for turn_id in gold]
    return (
        len(turn_ids),
        measure_search("", tasks.found.read_rankings(), gold).mean("nDCG@5") if gold else None,
        mean(rouge) if rouge else None,
        float(mean(is_told(turns[turn_id]) for turn_id in turn_ids)),
        float(mean(is_clarification(clarified[turn_id].response.text) for turn_id in turn_ids)),
    )


def tabulate_told(kinds: Kinds, answered: Mapping[System, AnsweredTasks]) -> Table:
    """How well what has no answer is told from what has one; the unanswerable told where 6 % of the others may be."""
    about = (
        "Unanswerable: told to have no answer in the passages found, and of what has an answer those wrongly told so; "
        "the same by the best threshold with at most 6 % wrongly told; the area under the curve of the score."
    )
    runs = {system: tasks.found for system, tasks in answered.items()}
    return make_table("unanswerable", about, runs, lambda run: measure_told(kinds, run))


def measure_told(kinds: Kinds, run: AnsweredBed) -> Figures:
    """The figures of one system; without an embedding model there is no score to choose a threshold of."""
    turns = run.read_turns()
    answerable = [turn for turn_id, turn in turns.items() if kinds[turn_id] in WITH_ANSWER]
    others = [turn for turn_id, turn in turns.items() if kinds[turn_id] == "UNANSWERABLE"]
    if not answerable or not others:
        return {}
    figures: Figures = {
        "told": float(mean(map(is_told, others))),
        "wrongly": float(mean(map(is_told, answerable))),
    }
    embedder = open_embedder(run.embedder)
    if embedder is None:
        return figures
    embed = cache_vectors(embedder).embed
    right, wrong = (
        [score_answerability(turn.passages, turn.query, embed, Plan().tuning) for turn in each]
        for each in (answerable, others)
    )
    told, wrongly = share_told(right, wrong)
    return figures | {"told at 6 %": told, "wrongly at 6 %": wrongly, "AUC": area_under_curve(right, wrong)}


def is_told(turn: TurnResult) -> bool:
    """Whether an answer says that the passages found hold none."""
    return says_not_found(turn.response) or not turn.response.used


def _measure_rouge(bed: Bed, turn: TurnResult) -> float:
    reply = bed.topics.labels[turn.turn_id].reply
    return rouge_f1(reply, strip_not_found(turn.response.text))["ROUGE-1"]
