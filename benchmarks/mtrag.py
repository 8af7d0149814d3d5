"""MTRAG-UN's conversations, each answered at its last turn: `python -m benchmarks mtrag --data DIR`.

A conversation's kind: ANSWERABLE; PARTIAL, the passages have a part of the answer; UNANSWERABLE, the collection has
none; UNDERSPECIFIED, one should ask back, which convagent does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import mean
from typing import Literal, get_args

import msgspec

from agent.evaluation.answers import rouge_f1
from agent.evaluation.scores import measure_search
from agent.models.registry import open_embedder
from agent.turn.extractive_answer import says_not_found
from agent.turn.interface_sentences import strip_not_found
from benchmarks.answerability import area_under_curve, judge_passages, share_told
from benchmarks.bed import (
    DEFAULT,
    NO_MODEL,
    SYSTEMS,
    WORDS_ONLY,
    AnsweredBed,
    Bed,
    BenchRequest,
    Progress,
    System,
    WantedFile,
    answer_bed,
    check_files,
    choose_evenly,
    choose_systems,
    prepare_bed,
    prepare_folder,
)
from benchmarks.figures import BenchedBed, Figures, Row, Table, make_table, measure_answers, measure_rankings
from indexes.index_vectors import cache_vectors
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Plan, TurnResult
from schemas.wire import decode

Kind = Literal["ANSWERABLE", "PARTIAL", "UNANSWERABLE", "UNDERSPECIFIED"]
Kinds = Mapping[str, Kind]  # by turn id
WITH_ANSWER: tuple[Kind, ...] = ("ANSWERABLE", "PARTIAL")
KIND_COLUMNS = ("conversations", "nDCG@5", "ROUGE-1", "told")


@dataclass(frozen=True, slots=True)
class AnsweredTasks:
    """One system's runs: from what it finds, and from the gold passages."""

    found: AnsweredBed
    given: AnsweredBed


def tabulate_given(bed: Bed, answered: Mapping[System, AnsweredTasks]) -> Table:
    """Answers from the gold passages."""
    about = (
        f"Answers: {len(bed.gold)} conversations that have one, from the gold passages, against the reference answer."
    )
    given = {system: tasks.given for system, tasks in answered.items()}
    return make_table("given", about, given, lambda run: measure_answers(bed, run, tuple(bed.gold)))


def tabulate_kinds(bed: Bed, kinds: Kinds, answered: Mapping[System, AnsweredTasks]) -> Table:
    """A row for each system and kind."""
    about = "By kind: search, answers from what was found, and those told to have no answer in the passages found."
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
    turns = tasks.found.read_turns()
    rouge = [_measure_rouge(bed, turns[turn_id]) for turn_id in gold]
    return (
        len(turn_ids),
        measure_search("", tasks.found.read_rankings(), gold).mean("nDCG@5") if gold else None,
        mean(rouge) if rouge else None,
        float(mean(is_told(turns[turn_id]) for turn_id in turn_ids)),
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
    embedder = cache_vectors(embedder)
    right, wrong = (
        [judge_passages(turn.passages, turn.query, embedder, Plan().tuning) for turn in each]
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


K = 100  # passages of a ranking
REPOSITORY = "github.com/IBM/mt-rag-benchmark (Apache-2.0)"
PASSAGES, TASKS = "mtrag_un/passages.jsonl", "mtrag_un/tasks_dev.jsonl"
WANTED = (
    WantedFile(
        PASSAGES, "the passages that are searched: `id`, `title`, `text`, a line each", f"{REPOSITORY}, MTRAG-UN"
    ),
    WantedFile(
        TASKS,
        "the conversations, a line each: `id`, `kind`, `messages` (`role`, `content`), `target`, the reference answer, "
        "and `gold`, the ids of its passages",
        f"{REPOSITORY}, the tasks of MTRAG-UN with their answerability as `kind`",
    ),
)
IN_FULL = (DEFAULT, NO_MODEL, WORDS_ONLY)  # systems that also answer from gold passages


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
    def turn_number(self) -> int:
        """Of the utterance that is answered, from 1."""
        return len(self.messages) // 2 + 1

    def as_question(self, number: int) -> dict[str, object]:
        """The row of a SCAI-QReCC questions file."""
        *context, last = (message.content for message in self.messages)
        return {
            "Conversation_no": number,
            "Turn_no": self.turn_number,
            "Context": context,
            "Question": last,
            "Truth_passages": self.gold if self.kind in WITH_ANSWER else (),
            "Truth_answer": self.target,
        }


def run_mtrag(request: BenchRequest, progress: Progress) -> BenchedBed:
    """Every system over the bed, and the tables. Raises `MissingError` naming all files that are not there."""
    check_files(request.data, WANTED)
    systems = choose_systems(SYSTEMS, request)
    prepare_folder(request.folder, resume=request.resume, overwrite=request.overwrite)
    tasks = choose_evenly(read_tasks(request), request.limit)
    questions = [task.as_question(number) for number, task in enumerate(tasks, start=1)]
    bed = prepare_bed(request.folder, questions, [request.data / PASSAGES], progress.stages, resume=request.resume)
    bed = replace(bed, k=K)
    kinds: Kinds = dict(zip(bed.topics.turn_ids(), (task.kind for task in tasks), strict=True))
    found = {system: answer_bed(bed, system, request, progress.turns) for system in systems}
    in_full = {
        system: AnsweredTasks(found[system], answer_bed(bed, system, request, progress.turns, "given"))
        for system in systems
        if system in IN_FULL
    }
    search = make_table("search", bed.about_search(), found, lambda run: measure_rankings(bed, run))
    tables = search, tabulate_given(bed, in_full), tabulate_kinds(bed, kinds, in_full), tabulate_told(kinds, in_full)
    return BenchedBed(bed, tables, found)


def read_tasks(request: BenchRequest) -> list[Task]:
    """The conversations. Raises `InvalidInputError` with the line that is none."""
    path = request.data / TASKS
    tasks = []
    for number, line in enumerate(read_utf8(path).splitlines(), start=1):
        try:
            tasks.append(decode(line, Task))
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"is no conversation of MTRAG-UN ({error})", where=f"{path}:{number}") from error
    return tasks
