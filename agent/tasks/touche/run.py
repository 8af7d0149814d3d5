"""Touché, task 1 (CLEF 2020 and 2021): arguments for controversial questions, ranked from a directory as TIRA gives it.

The input is a directory with `topics.xml` and the files of args.me, the output is `run.txt`. Every run makes an index
of its own and deletes it afterwards, so that no run can rest on an index of other files.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from agent.exchange.trec import format_trec_lines
from agent.tasks.touche.ranking import CollectionStatistics, Ranker
from agent.tasks.touche.topics import ControversialQuestion, read_questions
from indexes.corpora.args_me import ArgumentCorpus, find_arguments
from indexes.index_builder import BuildReport, build_index
from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.storage.atomic_files import scratch_directory
from indexes.storage.files import check_writable, write_atomically
from indexes.text.analysis import extract_stems
from schemas.errors import RunError, UsageError
from schemas.records import Hit

log = logging.getLogger("convagent")
TOPICS_FILE, RUN_FILE = "topics.xml", "run.txt"
MOST = 1000  # arguments of a topic that a run may hold (the task's page)
Progress = Callable[[ArgumentCorpus], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True, slots=True)
class ToucheTask:
    """What to rank, and how."""

    directory: Path  # of the input
    k: int = MOST
    name: str = "convagent"
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
        ranked = rank_topics(questions, arguments, task, place / "index", progress)
    lines = (format_trec_lines(number, hits, task.name).encode() for number, hits in ranked.hits.items())
    write_atomically(output / RUN_FILE, lines)
    return ranked


def rank_topics(
    questions: Sequence[ControversialQuestion],
    arguments: ArgumentCorpus,
    task: ToucheTask,
    index: Path,
    progress: Progress,
) -> ToucheReport:
    """The rankings for questions by topic number, over an index that is made in the directory `index`.

    The words of the questions are counted in the whole collection while it is indexed, so no text is read twice.
    """
    statistics = CollectionStatistics({word for question in questions for word in extract_stems(question.title)})
    with progress(arguments) as tick:
        built = build_index(
            arguments,
            index,
            skip_problems=task.skip_problems,
            progress=tick,
            on_passage=lambda passage: statistics.add_text(build_searchable_text(passage)),
        )
    log.info("%d arguments indexed; ranking them for %d topics", built.info.passages, len(questions))
    ranker = Ranker(PassageIndex(index), statistics)
    return ToucheReport(arguments, built, {q.number: ranker.rank(q.title, task.k) for q in questions})
