"""Touché, task 1 (CLEF 2020 and 2021): arguments for controversial questions, ranked from a directory as TIRA gives it.

The input is a directory with `topics.xml` and the files of args.me, the output is `run.txt`. Every run makes an index
of its own and deletes it afterwards, so that no run can rest on an index of other files.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import prompts
from agent.exchange.trec import format_trec_lines
from agent.tasks.touche.ranking import CollectionStatistics, Ranker
from agent.tasks.touche.topics import ControversialQuestion, read_questions
from indexes.corpora.args_me import ArgumentCorpus, find_arguments
from indexes.index_builder import BuildReport, build_index
from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.storage.atomic_files import scratch_directory
from indexes.storage.files import check_writable, write_atomically
from indexes.text.analysis import WeightedText, weight_stems
from schemas.errors import RunError, UsageError
from schemas.records import Hit, Message, Plan

if TYPE_CHECKING:
    from agent.models.protocol import LanguageModel

log = logging.getLogger("convagent")
TOPICS_FILE, RUN_FILE = "topics.xml", "run.txt"
MOST = 1000  # arguments of a topic that a run may hold (the task's page)
Progress = Callable[[ArgumentCorpus], AbstractContextManager[Callable[[], None]]]
Query = Sequence[WeightedText]


@dataclass(frozen=True, slots=True)
class ToucheTask:
    """What to rank, and how."""

    directory: Path  # of the input
    k: int = MOST
    name: str = "convagent"
    model: str | None = None  # what expands the questions, if anything
    skip_problems: bool = False  # leave bad arguments out


@dataclass(frozen=True, slots=True)
class ToucheReport:
    """A finished run: what was indexed, from what, and the ranking by topic number."""

    arguments: ArgumentCorpus
    built: BuildReport
    hits: Mapping[str, tuple[Hit, ...]]


def write_run(task: ToucheTask, output: Path, progress: Progress, *, overwrite: bool) -> ToucheReport:
    """Rank the arguments of the input for each of its topics, and write `output/run.txt` whole or not at all.

    Raises before any work where the run is there already, and `InvalidInputError` for bad topics or arguments;
    bad arguments can be skipped instead, and are listed then.
    """
    if output.exists() and not output.is_dir():
        raise UsageError("is no directory", where=str(output))
    arguments, questions = find_arguments(task.directory), read_questions(task.directory / TOPICS_FILE)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"could not be made ({error.strerror})", where=str(output)) from error
    check_writable(output / RUN_FILE, overwrite)
    with scratch_directory(output / RUN_FILE) as place:
        ranked = rank_topics(make_queries(questions, task.model), arguments, task, place / "index", progress)
    lines = (format_trec_lines(number, hits, task.name).encode() for number, hits in ranked.hits.items())
    write_atomically(output / RUN_FILE, lines)
    return ranked


def rank_topics(
    asked: Mapping[str, Query], arguments: ArgumentCorpus, task: ToucheTask, index: Path, progress: Progress
) -> ToucheReport:
    """The rankings of queries by topic number, over an index that is made in the directory `index`.

    The words of the queries are counted in the whole collection while it is indexed, so no text is read twice.
    """
    statistics = CollectionStatistics({word for query in asked.values() for word in weight_stems(query)})
    with progress(arguments) as tick:
        built = build_index(
            arguments,
            index,
            skip_problems=task.skip_problems,
            progress=tick,
            on_passage=lambda passage: statistics.add_text(build_searchable_text(passage)),
        )
    log.info("%d arguments indexed; ranking them for %d topics", built.info.passages, len(asked))
    ranker = Ranker(PassageIndex(index), statistics)
    return ToucheReport(arguments, built, {number: ranker.rank(query, task.k) for number, query in asked.items()})


def make_queries(questions: Sequence[ControversialQuestion], model: str | None) -> dict[str, Query]:
    """What to search for, by topic number: the question, and with a model what it would answer out of hand, too.

    The best run of 2020 took words from a model that continued the question (Akiki and Potthast 2020).
    """
    if model is None:
        return {question.number: [(question.title, 1.0)] for question in questions}
    from agent.models.registry import open_model

    llm = open_model(model)
    return {question.number: _expand_question(question, llm) for question in questions}


def _expand_question(question: ControversialQuestion, llm: "LanguageModel") -> Query:
    from agent.models.protocol import Conversation
    from agent.turn.query_rewriting import generate_hypothetical_answers

    plan = Plan(query=("hyde",))
    conversation = Conversation(prompts.render("system").instruction, (Message("user", question.title),))
    answers = generate_hypothetical_answers(conversation, llm, plan)
    weight = plan.tuning.retrieval.hyde_weight / max(1, len(answers))
    return [(question.title, 1.0), *((answer, weight) for answer in answers)]
