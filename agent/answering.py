"""`convagent answer`: from a topics file to a run file and its trace."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from agent.files import check_writable
from agent.job import OnTurn, prepare, run, write_run
from agent.trace import Trace, resume
from agent.tracks import read_topics
from indexes.passages import PassageIndex
from schemas.records import Answered, Problem, RunInfo

Progress = Callable[[int, int], AbstractContextManager[OnTurn]]


@dataclass(frozen=True, slots=True)
class Request:
    """What to answer, and with what."""

    topics: Path
    index: Path
    model: str
    edition: str | None  # of the run; None: that of the topics
    run_name: str
    k: int
    shown: int


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where run and trace go. A run path of `-` is stdout."""

    run: Path
    trace: Path
    resume: bool

    @classmethod
    def choose(cls, topics: Path, run: Path | None, trace: Path | None, *, resume: bool, overwrite: bool) -> "Outputs":
        """Names by default after the topics file. Raises where something is in the way, before any work."""
        default = Path(f"{topics.name.removesuffix('.json')}.run.json")
        named = default if run is None or str(run) == "-" else run
        trace = trace or named.with_name(f"{named.name.removesuffix('.jsonl').removesuffix('.json')}.trace.jsonl")
        run = run or default
        if str(run) != "-":
            check_writable(run, overwrite or resume)
        check_writable(trace, overwrite or resume)
        return cls(run, trace, resume)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it."""

    answered: tuple[Answered, ...]
    run: Path
    trace: Path
    edition: str
    resumed: int
    problems: tuple[Problem, ...]


def answer_file(request: Request, outputs: Outputs, progress: Progress) -> Report:
    """Answer all turns and write the run. Raises before any work for whatever can be known to be wrong by then."""
    topics = read_topics(request.topics)
    edition = request.edition or topics.edition
    job = prepare(topics, PassageIndex(request.index), request.model, k=request.k, shown=request.shown)
    before = resume(outputs.trace, job.settings) if outputs.resume else Trace(job.settings, (), 0)
    with progress(len(topics.turn_ids()), len(before.lines)) as on_turn:
        answered = run(job, outputs.trace, before, on_turn)
    problems = write_run(outputs.run, answered, topics, RunInfo(request.run_name), edition)
    return Report(answered, outputs.run, outputs.trace, edition, len(before.lines), tuple(problems))
