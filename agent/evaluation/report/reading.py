"""The files of a report, opened and held against each other; all that is wrong with them is said at once."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from agent.evaluation.answers import PassageSource
from agent.evaluation.ptkb import labels_of_topics, read_statement_labels
from agent.evaluation.report.request import LabelFiles, Material, OpenedRun, ReportRequest, RunFiles, TracedTurn
from agent.evaluation.report.traces import ReadTrace, find_trace, is_trace, read_traced_run
from agent.evaluation.scores import Qrels, check_turns_shared, read_qrels, read_run_file
from agent.runs.given_ranking import read_ranking
from agent.tracks.duplicates import find_duplicates
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn
from agent.tracks.shapes import list_problems
from agent.tracks.topic_files import read_topics
from indexes.corpora.corpus import find_corpus
from indexes.passage_index import PassageIndex
from indexes.storage.files import check_writable, read_bytes
from schemas.errors import ConvagentError, InvalidInputError, UsageError
from schemas.records import Passage, Problem, Topics

RANKING_SHOWN = 10  # passages of a ranking that a report shows
MOST_RUNS = 8  # that colours and shapes can tell apart
NO_TOPICS = Topics("", (), {})
NO_TRACE = ReadTrace({}, {}, {})
T = TypeVar("T")
log = logging.getLogger("convagent")


class ErrorCollection:
    """The errors of several files, kept until all were opened."""

    def __init__(self) -> None:
        self.found: list[ConvagentError] = []

    def attempt(self, read: Callable[[], T], otherwise: T) -> T:
        """What `read` returns, or `otherwise` where it fails."""
        try:
            return read()
        except ConvagentError as error:
            self.found.append(error)
            return otherwise

    def raise_all(self) -> None:
        """Raise what was found; the error itself where it is the only one."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            kinds = {type(error) for error in self.found}
            kind = kinds.pop() if len(kinds) == 1 else InvalidInputError
            raise kind("\n".join(["there is no report of these files:", *(f"  {error}" for error in self.found)]))


def open_material(request: ReportRequest) -> Material:
    """Everything that a report shows. Raises one error that names every file with which something is wrong."""
    errors = ErrorCollection()
    errors.attempt(lambda: check_writable(request.output, request.overwrite), None)
    errors.attempt(lambda: _check_count(request.runs), None)
    topics = errors.attempt(lambda: read_topics(request.topics), NO_TOPICS)
    passage_labels = errors.attempt(lambda: _read_passage_labels(request.labels, topics), {})
    statement_labels = errors.attempt(lambda: _read_statement_labels(request.labels, topics), {})
    names = name_runs(request.runs)
    opened = [
        errors.attempt(lambda files=files, name=name: open_run(files, name, topics), None)  # type: ignore[misc]
        for files, name in zip(request.runs, names, strict=True)
    ]
    runs = tuple(run for run, _ in filter(None, opened))
    own = {id: passage for _, texts in filter(None, opened) for id, passage in texts.items()}
    bare = Material(topics, runs, passage_labels, statement_labels, request.labels.rel_level, own)
    texts = errors.attempt(lambda: collect_shown_texts(bare, request.texts), own)
    errors.raise_all()
    return Material(topics, runs, passage_labels, statement_labels, request.labels.rel_level, texts)


def _check_count(runs: tuple[RunFiles, ...]) -> None:
    if not 1 <= len(runs) <= MOST_RUNS:
        raise UsageError(f"a report is of 1 to {MOST_RUNS} runs, not {len(runs)}")


def name_runs(runs: Iterable[RunFiles]) -> list[str]:
    """What each run is called: its own name, or that of its file; with a number where two would be called the same."""
    names = [files.name or _stem(files.run) for files in runs]
    return [f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
            for place, name in enumerate(names)]


def _stem(path: Path) -> str:
    name = path.name
    for suffix in (".jsonl", ".json", ".trec", ".txt", ".trace", ".run"):
        name = name.removesuffix(suffix) or name
    return name


def open_run(files: RunFiles, name: str, topics: Topics) -> tuple[OpenedRun, Mapping[str, Passage]]:
    """A run with its trace, and the texts of passages that the two bring.

    Raises `InvalidInputError` for a run of other topics, and for a trace of another run.
    """
    if is_trace(files.run):
        trace = read_traced_run(files.run)
        turns = trace.turns
    else:
        turns = _read_turns(files.run)
        path = files.trace or find_trace(files.run)
        trace = read_traced_run(path) if path else NO_TRACE
        _check_trace(turns, trace, path)
    known = dict.fromkeys(topics.turn_ids())
    if known:
        check_turns_shared(files.run, turns, {id: {} for id in known})
    texts = {p.id: Passage(p.id, p.text) for turn in turns.values() for p in _passages(turn) if p.text.strip()}
    traced: Mapping[str, TracedTurn] = trace.traced
    return OpenedRun(name, files.run, turns, traced, {}), texts | trace.texts


def _passages(turn: RunTurn) -> tuple[RunPassage, ...]:
    return turn.responses[0].passages or () if turn.responses else ()
