"""Touché, task 1 (CLEF 2020 and 2021): arguments for controversial questions, ranked from a directory as TIRA gives it.

In goes a directory with `topics.xml` and the files of args.me, out comes `run.txt`. The index is made anew for every
run, in a place of its own that is gone afterwards: no run can rest on an index of other files.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from agent.files import check_writable, write_whole
from agent.rankings import trec_lines
from agent.touche.ranking import Ranker, Ways
from agent.touche.topics import Question, read_questions
from indexes.arguments import Arguments, find_arguments
from indexes.passages import Built, PassageIndex, Weighted, build_index, weighted, whole_text
from indexes.statistics import Counting
from indexes.whole import scratch_directory
from schemas.errors import RunError, UsageError
from schemas.records import Hit

log = logging.getLogger("convagent")
TOPICS_FILE, RUN_FILE = "topics.xml", "run.txt"
MOST = 1000  # arguments of a topic that a run may hold (the task's page)
Progress = Callable[[Arguments], AbstractContextManager[Callable[[], None]]]
Query = Sequence[Weighted]


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked for."""

    directory: Path  # of the input
    ways: Ways = Ways()
    k: int = MOST
    name: str = "convagent"
    model: str | None = None  # what expands the questions, if anything
    skip_problems: bool = False  # leave bad arguments out


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished run: what was indexed, from what, and the ranking by topic number."""

    arguments: Arguments
    built: Built
    hits: Mapping[str, tuple[Hit, ...]]


def write_run(task: Task, output: Path, progress: Progress, *, overwrite: bool) -> Finished:
    """Rank the arguments of the input for each of its topics, and write `output/run.txt` whole or not at all.

    Raises before any work where the run is there already, and `InvalidInputError` for topics or arguments that are
    none; bad arguments can be skipped instead, and are listed then.
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
        ranked = ranked_for(queries(questions, task.model), arguments, task, place / "index", progress)
    lines = (trec_lines(number, hits, task.name).encode() for number, hits in ranked.hits.items())
    write_whole(output / RUN_FILE, lines)
    return ranked


def ranked_for(
    asked: Mapping[str, Query], arguments: Arguments, task: Task, index: Path, progress: Progress
) -> Finished:
    """The rankings of queries by topic number, over an index that is made in the directory `index`.

    The words of the queries are counted in the whole collection while it is indexed, so no text is read twice.
    """
    counting = Counting({word for query in asked.values() for word in weighted(query)})
    with progress(arguments) as tick:
        built = build_index(
            arguments,
            index,
            skip_problems=task.skip_problems,
            progress=tick,
            seen=lambda p: counting.add(whole_text(p)),
        )
    log.info("%d arguments indexed; ranking them for %d topics", built.info.passages, len(asked))
    ranker = Ranker(PassageIndex(index), counting.statistics(), task.ways)
    return Finished(arguments, built, {number: ranker.rank(query, task.k) for number, query in asked.items()})


def queries(questions: Sequence[Question], model: str | None) -> dict[str, Query]:
    """What to search for, by topic number: the question, and with a model what it would answer out of hand."""
    if model is None:
        return {question.number: [(question.title, 1.0)] for question in questions}
    from agent.llm import open_model
    from agent.touche.expansion import expanded

    llm = open_model(model)
    return {question.number: expanded(question, llm) for question in questions}
