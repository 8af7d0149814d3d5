"""The files of a report, opened and held against each other; all that is wrong with them is said at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from agent.evaluation.answers import PassageSource
from agent.evaluation.ptkb import labels_of_topics, read_statement_labels
from agent.evaluation.report.request import LabelFiles, Material, OpenedRun, ReportRequest, RunFiles
from agent.evaluation.report.traces import ReadTrace, find_trace, is_trace, read_traced_run, topics_of_traces
from agent.evaluation.scores import Qrels, read_qrels, read_run_file
from agent.exchange.nugget_files import read_assignments
from agent.exchange.trec import sort_by_score
from agent.runs.given_ranking import describe_ranking, read_ranking
from agent.tracks.json_files import find_duplicates
from agent.tracks.lenient_reading import list_problems
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn
from agent.tracks.topic_files import read_topics
from indexes.corpora.corpus import find_corpus
from indexes.passage_index import PassageIndex
from indexes.storage.files import read_utf8
from schemas.errors import ConvagentError, InvalidInputError, UsageError
from schemas.records import Hit, Passage, Topics

RANKING_SHOWN = 10  # passages of a ranking that a report shows
MOST_RUNS = 8  # that colours and shapes can tell apart
NO_TOPICS = Topics("", (), {})
NO_TRACE = ReadTrace("", "automatic", {}, {}, {})
NO_LABELS: Qrels = {}
NO_TEXTS: dict[str, Passage] = {}
SUFFIXES = (".jsonl", ".json", ".trec", ".txt", ".trace", ".run")
T = TypeVar("T")


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
            raise kind("\n".join(["these files cannot be compared:", *(f"  {error}" for error in self.found)]))


def open_material(request: ReportRequest, errors: ErrorCollection) -> Material:
    """Everything that is shown of runs. Raises one error for every file with which something is wrong.

    `errors` may hold some already, which are raised with the others.
    """
    labels, given = request.labels, request.topics
    errors.attempt(lambda: _check_count(request.runs), None)
    topics = errors.attempt(lambda: read_topics(given), NO_TOPICS) if given else NO_TOPICS
    runs: list[OpenedRun] = []
    for files, name in zip(request.runs, name_runs(request.runs), strict=True):
        if run := errors.attempt(partial(open_run, files, name, topics), None):
            runs.append(run)
    topics = topics if given else topics_of_traces(runs)
    passage_labels = errors.attempt(lambda: _read_passage_labels(labels, topics), NO_LABELS)
    statement_labels = errors.attempt(lambda: _read_statement_labels(labels, topics), NO_LABELS)
    bare = Material(topics, tuple(runs), passage_labels, statement_labels, labels.rel_level, {})
    texts = errors.attempt(lambda: collect_shown_texts(bare, request.texts), NO_TEXTS)
    errors.raise_all()
    return replace(bare, texts=texts)


def _check_count(runs: tuple[RunFiles, ...]) -> None:
    if not 1 <= len(runs) <= MOST_RUNS:
        raise UsageError(f"a report is of 1 to {MOST_RUNS} runs, not of {len(runs)}")


def name_runs(runs: Sequence[RunFiles]) -> list[str]:
    """What each run is called: as it was named, or as its file; with a number where two would be called the same."""
    names = [files.name or _strip_suffixes(files.run) for files in runs]
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _strip_suffixes(path: Path) -> str:
    name = path.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix) or name
    return name


def _read_passage_labels(labels: LabelFiles, topics: Topics) -> Qrels:
    """Of a file, or the topics' own passages."""
    if labels.passages is None:
        own = {id: dict.fromkeys(known.passage_ids, labels.rel_level) for id, known in topics.labels.items()}
        return own if any(own.values()) else NO_LABELS
    return _keep_turns_of(topics, read_qrels(labels.passages), labels.passages)


def _read_statement_labels(labels: LabelFiles, topics: Topics) -> Qrels:
    if labels.statements is None:
        return labels_of_topics(topics)
    return _keep_turns_of(topics, read_statement_labels(labels.statements), labels.statements)


def _keep_turns_of(topics: Topics, labels: Qrels, path: Path) -> Qrels:
    """The labels of the topics' turns. Raises `InvalidInputError` where there is none."""
    _check_topics_shared(path, labels, topics)
    return {id: labels[id] for id in topics.turn_ids() if id in labels}


def _check_topics_shared(path: Path, found: Iterable[str], topics: Topics) -> None:
    """Raise `InvalidInputError` where a file has no turn of the topics."""
    theirs, ours = list(found), topics.turn_ids()
    if ours and not {*theirs} & {*ours}:
        first = f"it has {theirs[0]!r}" if theirs else "it is empty"
        what = f"has no turn of the topics: {first}, the topics have {ours[0]!r}"
        raise InvalidInputError(what, where=str(path), remedy="Is it of the same year?")


def open_run(files: RunFiles, name: str, topics: Topics) -> OpenedRun:
    """A run with its trace and its nuggets. Raises for a run of other topics, and for a trace of another run."""
    if is_trace(files.run):
        trace = read_traced_run(files.run)
        edition, turns = trace.edition, trace.turns
    else:
        edition, turns = _read_turns(files.run)
        path = files.trace or find_trace(files.run)
        trace = read_traced_run(path) if path else NO_TRACE
        if path:
            _check_trace(path, turns, trace.turns)
    _check_topics_shared(files.run, turns, topics)
    answers = read_assignments(files.nuggets) if files.nuggets else ()
    texts = {p.id: Passage(p.id, p.text) for turn in turns.values() for p in passages_of(turn) if p.text.strip()}
    rankings = {id: _rank(turn) for id, turn in turns.items()}
    nuggets = {answer.turn_id: answer for answer in answers}
    given = trace.mode == "manual"
    return OpenedRun(name, edition, turns, rankings, trace.traced, nuggets, given, texts | trace.texts)


def _rank(turn: RunTurn) -> tuple[str, ...]:
    return tuple(id for id, _ in sort_by_score([(passage.id, passage.score) for passage in passages_of(turn)]))


def _read_turns(path: Path) -> tuple[str, dict[str, RunTurn]]:
    """The edition and the turns of a run file; of a file that has rankings alone, no edition."""
    if describe_ranking(read_utf8(path)):
        return "", {id: _to_turn(id, hits) for id, hits in read_ranking(path).hits.items()}
    edition, turns = read_run_file(path)
    if problems := find_duplicates(("turn", turn.turn_id) for turn in turns):
        raise InvalidInputError(list_problems("has turns twice", problems), where=str(path))
    return edition, {turn.turn_id: turn for turn in turns}


def _to_turn(turn_id: str, hits: Sequence[Hit]) -> RunTurn:
    ranking = tuple(RunPassage(hit.id, hit.score) for hit in hits)
    return RunTurn(turn_id, (RunResponse(1, None, ranking),))


def _check_trace(path: Path, turns: Mapping[str, RunTurn], traced: Mapping[str, RunTurn]) -> None:
    """Raise `InvalidInputError` where a trace tells of other answers than the run has."""
    other = [id for id, turn in turns.items() if (known := traced.get(id)) and answer_of(known) != answer_of(turn)]
    if other or not turns.keys() & traced.keys():
        what = f"is of another run: it has another answer at turn {other[0]}" if other else "is of other turns"
        raise InvalidInputError(what, where=str(path), remedy="Give each run its own with --trace, or move it away.")


def answer_of(turn: RunTurn) -> str:
    """The text of the first response."""
    return (turn.responses[0].text or "") if turn.responses else ""


def passages_of(turn: RunTurn) -> tuple[RunPassage, ...]:
    """The ranking of the first response."""
    return (turn.responses[0].passages or ()) if turn.responses else ()


def collect_shown_texts(material: Material, source: PassageSource) -> dict[str, Passage]:
    """The texts of all passages that a report shows, as far as somebody gave them: the runs, files, an index."""
    own = {id: passage for run in material.runs for id, passage in run.texts.items()}
    wanted = dict.fromkeys(id for turn_id in material.topics.turn_ids() for id in _shown_ids(material, turn_id))
    found = {id: own[id] for id in wanted if id in own}
    for _, _, passage in find_corpus(source.passages) if source.passages else ():
        if not isinstance(passage, str) and passage.id in wanted:
            found.setdefault(passage.id, passage)
    index = PassageIndex(source.index) if source.index else None
    for id in wanted if index else ():
        if index and id not in found and (passage_found := index.find(id)):
            found[id] = passage_found
    return found


def _shown_ids(material: Material, turn_id: str) -> Iterator[str]:
    yield from material.relevant_ids(turn_id)
    for run in material.runs:
        if turn := run.turns.get(turn_id):
            yield from run.rankings[turn_id][:RANKING_SHOWN]
            yield from (hit.id for response in turn.responses[:1] for hit in response.used)
