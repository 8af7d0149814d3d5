"""`convagent answer`: from a topics file to a run file, its trace and its metadata."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from agent.embedders import open_embedder
from agent.embedding import cached
from agent.files import check_writable
from agent.job import OnTurn, Worker, prepare, run, run_info, write_run
from agent.llm import open_model, threads_to_use
from agent.llm.embedded import cache_directory
from agent.llm.scripted import ScriptedModel
from agent.metadata import metadata_path, write_metadata
from agent.sources import Origin, open_sources
from agent.trace import empty, resume
from agent.tracks import read_topics, usual_sureness
from agent.tracks.run_files import check_expressible
from indexes.cache import Cache
from schemas.errors import UsageError
from schemas.records import Call, Mode, Plan, Problem, QueryPart, RunInfo, Topics

Progress = Callable[[int, int], AbstractContextManager[OnTurn]]


@dataclass(frozen=True, slots=True)
class Request:
    """What to answer, and with what."""

    topics: Path
    origin: Origin
    model: str
    plan: Plan = Plan()
    mode: Mode | None = None  # None: only-response where a ranking is given, else automatic
    edition: str | None = None  # of the run; None: that of the topics
    run_name: str = "convagent"
    team: str = "convagent"
    sure: float | None = None  # `Plan.sure`; None: as is usual for the edition of the topics
    jobs: int = 1  # topics at a time
    cache: bool = True  # whether replies and vectors are kept, and taken from what is kept


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
            check_writable(metadata_path(run), overwrite or resume)
        check_writable(trace, overwrite or resume)
        return cls(run, trace, resume)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it."""

    turns: int
    run: Path
    trace: Path
    edition: str
    resumed: int
    problems: tuple[Problem, ...]
    without_model: Mapping[str, str]  # why, by turn id, where the model failed


def answer_file(request: Request, outputs: Outputs, progress: Progress) -> Report:
    """Answer all turns and write the run. Raises before any work for whatever can be known to be wrong by then."""
    mode = _mode(request)
    topics = read_topics(request.topics)
    edition = request.edition or topics.edition
    info = RunInfo(request.run_name, mode, request.team, request.plan.parts)
    check_expressible(edition, info, topics, request.plan.responses)
    sure = usual_sureness(topics.edition) if request.sure is None else request.sure
    plan = replace(request.plan, sure=sure)
    workers = _workers(request, topics, plan)
    sources = open_sources(request.origin, topics, plan, workers[0].embedder)
    job = prepare(topics, sources, workers[0], mode, plan)
    info = run_info(job.settings, request.run_name, request.team)
    before = resume(outputs.trace, job.settings) if outputs.resume else empty(outputs.trace, job.settings)
    if isinstance(workers[0].llm, ScriptedModel) and before.replies:
        workers[0].llm.go_on_after(call for line in before.lines(before.replies) for call in line.calls)
    with progress(len(topics.turn_ids()), len(before.replies)) as on_turn:
        trace = run(job, workers, before, on_turn)
    problems = write_run(outputs.run, trace, topics, info, edition)
    if str(outputs.run) != "-":
        write_metadata(metadata_path(outputs.run), request, trace, info)
    done, failed = len(before.replies), trace.without_model
    return Report(len(trace.places), outputs.run, outputs.trace, edition, done, tuple(problems), failed)


def _workers(request: Request, topics: Topics, plan: Plan) -> list[Worker]:
    """One for each job, sharing the cores and the cache of replies."""
    if request.jobs > 1 and request.model.startswith("scripted:"):
        raise UsageError("a script is played from the top: it cannot answer several topics at a time")
    threads = max(1, threads_to_use() // request.jobs)
    replies = Cache(cache_directory() / "replies.sqlite") if request.cache else None
    embeds = plan.searched or plan.read or any(topic.ptkb for topic in topics.topics)

    def worker() -> Worker:
        calls: list[Call] = []
        llm = open_model(request.model, calls.append, threads=threads, cache=replies)
        embedder = open_embedder(request.origin.embedder, threads=threads) if embeds else None
        return Worker(llm, cached(embedder) if embedder and request.cache else embedder, calls)

    return [worker() for _ in range(max(1, min(request.jobs, len(topics.topics))))]


def query_parts(named: str) -> tuple[QueryPart, ...]:
    """The parts of a query that are named, separated by commas. Raises `UsageError` for one that is none."""
    known = get_args(QueryPart)
    names = [name.strip() for name in named.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"no part of a query: {', '.join(unknown)} (available: {', '.join(known)})")
    return tuple(name for name in known if name in names)


def _mode(request: Request) -> Mode:
    """Raises `UsageError` for a mode and a ranking that contradict each other."""
    ranking, mode = request.origin.ranking, request.mode
    if mode == "only-response" and ranking is None:
        raise UsageError("--mode only-response needs a ranking", remedy="Give one with --ranking FILE.")
    if mode == "automatic" and ranking is not None:
        raise UsageError("--mode automatic searches, so it takes no ranking", remedy="Leave one of the two out.")
    if ranking is None and request.origin.passages:
        raise UsageError("--passages are the texts of a ranking", remedy="Give --ranking too, or build an index.")
    return mode or ("only-response" if ranking is not None else "automatic")
