"""The files of a report, read and held against each other; all that is wrong with them is said at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

from agent.evaluation.answers import PassageSource
from agent.evaluation.criteria_files import read_assignments
from agent.evaluation.judged_answers import JudgedAnswer
from agent.evaluation.ptkb import labels_of_topics, read_statement_labels
from agent.evaluation.scores import Qrels, conversation_of, read_qrels, read_run_file
from agent.exchange.trec import sort_by_score
from agent.runs.given_ranking import describe_ranking, read_ranking
from agent.runs.run import describe_run
from agent.runs.trace import TraceLine, read_trace
from agent.tracks.json_files import find_duplicates
from agent.tracks.lenient_reading import list_problems
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn, to_run_turns
from agent.tracks.topic_files import read_topics
from indexes.corpora.corpus import find_corpus
from indexes.passage_index import PassageIndex
from indexes.storage.files import open_to_read, read_utf8
from schemas.errors import ConvagentError, InvalidInputError, UsageError, format_count
from schemas.records import Passage, Statement, Topic, Topics, Turn

RANKING_SHOWN = 10  # passages of a ranking that a report shows
MOST_RUNS = 8  # that colours and shapes can tell apart
FIRST_BYTES = 1 << 16  # the settings, which are a trace's first line, are shorter
SUFFIXES = (".jsonl", ".json", ".trec", ".txt", ".trace", ".run")
NO_SOURCE = PassageSource()


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A run with what belongs to it."""

    run: Path  # a run file of any edition, a TREC run, or a trace, which holds its run
    trace: Path | None = None  # None: RUN.trace.jsonl, where that stands beside the run
    nuggets: Path | None = None  # assigned to this run's answers
    name: str = ""  # as the report calls it; "": by its file


def pair_files(
    runs: Sequence[Path], traces: Sequence[Path] = (), nuggets: Sequence[Path] = (), names: Sequence[str] = ()
) -> tuple[RunFiles, ...]:
    """Runs with what belongs to each, by their order. Raises `UsageError` where something is given for some alone."""
    for option, given in (("--trace", traces), ("--nuggets", nuggets), ("--name", names)):
        if given and len(given) != len(runs):
            what = f"{option} is given {format_count(len(given), 'time')} for {format_count(len(runs), 'run')}"
            raise UsageError(what, remedy="Give it once for each run, in the order of the runs, or not at all.")
    rest = (traces or repeat(None)), (nuggets or repeat(None)), (names or repeat(""))
    return tuple(RunFiles(*each) for each in zip(runs, *rest, strict=False))


@dataclass(frozen=True, slots=True)
class LabelFiles:
    """What is right, where the topics do not say it themselves."""

    passages: Path | None = None
    statements: Path | None = None
    rel_level: int = 1  # from which a passage counts as relevant


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Runs to compare; the others are compared with the first."""

    runs: tuple[RunFiles, ...]
    topics: Path | None  # None: what the traces know of them, which is no label
    output: Path = Path("report.html")
    labels: LabelFiles = LabelFiles()
    texts: PassageSource = NO_SOURCE
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run as it was read."""

    name: str
    edition: str  # "" for a TREC run, which has rankings alone
    turns: Mapping[str, RunTurn]
    rankings: Mapping[str, tuple[str, ...]]  # passage ids by turn id, as trec_eval orders them
    traced: Mapping[str, TraceLine]  # by turn id; empty without a trace
    nuggets: Mapping[str, JudgedAnswer]  # by turn id; empty without a file of assignments
    statements_given: bool = False  # whether it was handed the right ones, so that its choice says nothing


@dataclass(frozen=True, slots=True)
class Material:
    """All that was read, checked."""

    topics: Topics
    runs: tuple[OpenedRun, ...]
    passage_labels: Qrels  # empty where nobody gave any
    statement_labels: Qrels
    rel_level: int
    texts: Mapping[str, Passage]  # of passages that a report shows, by id

    def relevant_ids(self, turn_id: str) -> tuple[str, ...]:
        """The relevant passages of a turn."""
        labels = self.passage_labels.get(turn_id, {})
        return tuple(id for id, level in labels.items() if level >= self.rel_level)


class ErrorCollection:
    """The errors of several files, kept until all were opened."""

    def __init__(self) -> None:
        self.found: list[ConvagentError] = []

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Keep an error of what stands in the block."""
        try:
            yield
        except ConvagentError as error:
            self.found.append(error)

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
    labels = request.labels
    topics, runs, found = Topics("", (), {}), [], Material(Topics("", (), {}), (), {}, {}, labels.rel_level, {})
    with errors.keep():
        if not 1 <= len(request.runs) <= MOST_RUNS:
            raise UsageError(f"a report is of 1 to {MOST_RUNS} runs, not of {len(request.runs)}")
    with errors.keep():
        topics = read_topics(request.topics) if request.topics else topics
    for files, name in zip(request.runs, name_runs(request.runs), strict=True):
        with errors.keep():
            runs.append(_open_run(files, name, topics))
    found = replace(found, topics=topics if request.topics else _topics_of_traces(runs), runs=tuple(runs))
    with errors.keep():
        found = replace(found, passage_labels=_read_passage_labels(labels, found.topics))
    with errors.keep():
        found = replace(found, statement_labels=_read_statement_labels(labels, found.topics))
    with errors.keep():
        found = replace(found, texts=_collect_texts(found, request.texts))
    errors.raise_all()
    return found


def name_runs(runs: Sequence[RunFiles]) -> list[str]:
    """What each run is called: as it was named, or as its file; with a number where two would be called the same."""
    names = [files.name or _strip_suffixes(files.run.name) for files in runs]
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _strip_suffixes(name: str) -> str:
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix) or name
    return name


def _read_passage_labels(labels: LabelFiles, topics: Topics) -> Qrels:
    """Of a file, or the topics' own passages."""
    if labels.passages:
        return _keep_turns_of(topics, read_qrels(labels.passages), labels.passages)
    own = {id: dict.fromkeys(known.passage_ids, labels.rel_level) for id, known in topics.labels.items()}
    return own if any(own.values()) else {}


def _read_statement_labels(labels: LabelFiles, topics: Topics) -> Qrels:
    if labels.statements:
        return _keep_turns_of(topics, read_statement_labels(labels.statements), labels.statements)
    return labels_of_topics(topics)


def _keep_turns_of(topics: Topics, labels: Qrels, path: Path) -> Qrels:
    _check_topics_shared(path, labels, topics)
    return {id: labels[id] for id in topics.turn_ids() if id in labels}


def _check_topics_shared(path: Path, found: Iterable[str], topics: Topics) -> None:
    """Raise `InvalidInputError` where a file has no turn of the topics."""
    theirs, ours = list(found), topics.turn_ids()
    if ours and not {*theirs} & {*ours}:
        first = f"it has {theirs[0]!r}" if theirs else "it is empty"
        what = f"has no turn of the topics: {first}, the topics have {ours[0]!r}"
        raise InvalidInputError(what, where=str(path), remedy="Is it of the same year?")


def _open_run(files: RunFiles, name: str, topics: Topics) -> OpenedRun:
    """A run with its trace and its nuggets. Raises for a run of other topics, and for a trace of another run."""
    if is_trace(files.run):
        found = _read_traced_run(files.run, name)
    else:
        edition, turns = _read_turns(files.run)
        found = OpenedRun(name, edition, turns, {}, {}, {})
        if path := files.trace or _find_trace(files.run):
            traced = _read_traced_run(path, name)
            _check_trace(path, turns, traced.turns)
            found = replace(traced, edition=edition, turns=turns)
    _check_topics_shared(files.run, found.turns, topics)
    answers = read_assignments(files.nuggets) if files.nuggets else ()
    rankings = {id: _rank(turn) for id, turn in found.turns.items()}
    return replace(found, rankings=rankings, nuggets={answer.turn_id: answer for answer in answers})


def is_trace(path: Path) -> bool:
    """Whether a file begins as a trace does. Raises `MissingError` where it cannot be read."""
    with open_to_read(path) as file:
        return b'"trace_version"' in file.readline(FIRST_BYTES)


def _find_trace(run: Path) -> Path | None:
    """The trace that `convagent answer` wrote beside a run, where it is there."""
    beside = run.with_name(f"{run.name.removesuffix('.jsonl').removesuffix('.json')}.trace.jsonl")
    return beside if beside != run and beside.is_file() else None


def _read_traced_run(path: Path, name: str) -> OpenedRun:
    trace = read_trace(path)
    lines = {line.answered.turn_id: line for line in trace.lines()}
    answered = to_run_turns((line.answered for line in lines.values()), describe_run(trace.settings, path.name, ""))
    turns = {turn.turn_id: turn for turn in answered}
    return OpenedRun(name, trace.settings.edition, turns, {}, lines, {}, trace.settings.mode == "manual")


def _rank(turn: RunTurn) -> tuple[str, ...]:
    return tuple(id for id, _ in sort_by_score([(passage.id, passage.score) for passage in passages_of(turn)]))


def _read_turns(path: Path) -> tuple[str, dict[str, RunTurn]]:
    """The edition and the turns of a run file; of a file that has rankings alone, no edition."""
    if describe_ranking(read_utf8(path)):
        ranked = read_ranking(path).hits
        responses = {id: RunResponse(1, None, tuple(RunPassage(h.id, h.score) for h in ranked[id])) for id in ranked}
        return "", {id: RunTurn(id, (response,)) for id, response in responses.items()}
    edition, turns = read_run_file(path)
    if problems := find_duplicates(("turn", turn.turn_id) for turn in turns):
        raise InvalidInputError(list_problems("has turns twice", problems), where=str(path))
    return edition, {turn.turn_id: turn for turn in turns}


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


def _topics_of_traces(runs: Iterable[OpenedRun]) -> Topics:
    """As much of the topics as traces know: what was asked, and the statements that were chosen. No labels."""
    turns: dict[str, dict[str, Turn]] = {}
    statements: dict[str, dict[str, Statement]] = {}
    for answered in (line.answered for run in runs for line in run.traced.values()):
        topic, turn = conversation_of(answered.turn_id), Turn(answered.turn_id, answered.query.utterance)
        turns.setdefault(topic, {}).setdefault(turn.id, turn)
        chosen = (scored.statement for scored in answered.selected_statements)
        statements.setdefault(topic, {}).update((statement.id, statement) for statement in chosen)
    topics = (Topic(id, tuple(statements[id].values()), tuple(found.values())) for id, found in turns.items())
    return Topics("", tuple(topics), {})


def _collect_texts(material: Material, source: PassageSource) -> dict[str, Passage]:
    """The texts of all passages that a report shows, as far as somebody gave them: the runs, files, an index."""
    own: dict[str, Passage] = {}
    wanted = dict.fromkeys(id for turn_id in material.topics.turn_ids() for id in material.relevant_ids(turn_id))
    for run in material.runs:
        ranked = (passage for turn in run.turns.values() for passage in passages_of(turn))
        own |= {passage.id: Passage(passage.id, passage.text) for passage in ranked if passage.text.strip()}
        own |= {passage.id: passage for line in run.traced.values() for passage in line.answered.passages}
        for id, turn in run.turns.items():
            used = (hit.id for response in turn.responses[:1] for hit in response.used)
            wanted |= dict.fromkeys((*run.rankings[id][:RANKING_SHOWN], *used))
    found = {id: own[id] for id in wanted if id in own}
    for _, _, passage in find_corpus(source.passages) if source.passages else ():
        if not isinstance(passage, str) and passage.id in wanted:
            found.setdefault(passage.id, passage)
    index = PassageIndex(source.index) if source.index else None
    given = ((id, index.find(id)) for id in wanted if id not in found) if index else ()
    return found | {id: passage for id, passage in given if passage}
