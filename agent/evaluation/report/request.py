"""What a report is asked for, the files of runs, labels and texts, and the records that these are read into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from agent.evaluation.answers import PassageSource
from agent.evaluation.nuggets import AssignedAnswer
from agent.evaluation.scores import Qrels
from agent.tracks.run_records import RunTurn
from schemas.errors import UsageError, format_count
from schemas.records import Passage, Sentence, Statement, Topics

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
class StepCost:
    """What one step of a turn cost: all its calls together."""

    step: str
    calls: int
    tokens_read: int
    tokens_written: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TracedTurn:
    """What a trace knows of a turn that a run file does not say."""

    utterance: str
    rewrite: str
    statements: tuple[Statement, ...]  # that were chosen
    sentences: tuple[Sentence, ...]
    steps: tuple[StepCost, ...]
    seconds: float
    without_model: str  # why, where the model failed


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run as it was read."""

    name: str
    edition: str  # "" for a TREC run, which has rankings alone
    turns: Mapping[str, RunTurn]
    rankings: Mapping[str, tuple[str, ...]]  # passage ids by turn id, as trec_eval orders them
    traced: Mapping[str, TracedTurn]  # by turn id; empty without a trace
    nuggets: Mapping[str, AssignedAnswer]  # by turn id; empty without a file of assignments
    statements_given: bool  # whether it was handed the right ones, so that its choice says nothing
    texts: Mapping[str, Passage]  # that the run or its trace brings, by passage id


@dataclass(frozen=True, slots=True)
class Material:
    """All that was read, checked."""

    topics: Topics
    runs: tuple[OpenedRun, ...]
    passage_labels: Qrels  # empty where nobody gave any
    statement_labels: Qrels
    rel_level: int
    texts: Mapping[str, Passage]  # of passages that a report shows, by id

    def is_relevant(self, turn_id: str, passage_id: str) -> bool:
        return self.passage_labels.get(turn_id, {}).get(passage_id, 0) >= self.rel_level

    def relevant_ids(self, turn_id: str) -> tuple[str, ...]:
        """The relevant passages of a turn."""
        labels = self.passage_labels.get(turn_id, {})
        return tuple(id for id, level in labels.items() if level >= self.rel_level)
