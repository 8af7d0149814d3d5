"""`convagent bench mtrag`: MTRAG-UN's conversations, each answered at its last turn as in a run of SCAI-QReCC.

A conversation's kind: ANSWERABLE; PARTIAL, the passages have a part of the answer; UNANSWERABLE, the collection has
none; UNDERSPECIFIED, one should ask back.
"""

from dataclasses import replace
from typing import Literal

import msgspec

from agent.evaluation.bench.answering import BenchedBed, BenchRequest, Progress, answer_bed, choose_systems
from agent.evaluation.bench.bed import choose_evenly, prepare_bed, prepare_folder
from agent.evaluation.bench.figures import make_table, measure_rankings
from agent.evaluation.bench.mtrag_kinds import (
    WITH_ANSWER,
    AnsweredTasks,
    Kind,
    Kinds,
    tabulate_given,
    tabulate_kinds,
    tabulate_told,
)
from agent.evaluation.bench.systems import DEFAULT, NO_MODEL, SYSTEMS, WORDS_ONLY
from agent.evaluation.bench.wanted_files import WantedFile, check_files
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.wire import decode

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
IN_FULL = (DEFAULT, NO_MODEL, WORDS_ONLY)  # systems that also answer from gold passages, and ask back


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
        system: AnsweredTasks(
            found[system],
            answer_bed(bed, system, request, progress.turns, "given"),
            answer_bed(bed, system, request, progress.turns, "clarify"),
        )
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
