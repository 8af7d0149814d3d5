"""`convagent answer`: from a topics file to a run file and its trace."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from agent.models.local.hardware import threads_to_use
from agent.models.registry import is_server_address
from agent.runs.backends.local import LOCAL, Backend, Workforce, open_local
from agent.runs.evidence import Evidence, EvidenceFiles, open_evidence
from agent.runs.run import OnTurn, answer_remaining, describe_run, prepare_run, write_run
from agent.runs.trace import new_trace, resume_trace
from agent.runs.worker import WorkerSpecification
from agent.tracks.registry import load_edition
from agent.tracks.run_files import check_expressible
from agent.tracks.topic_files import read_topics
from indexes.storage.files import check_writable
from schemas.errors import UsageError
from schemas.records import Mode, Plan, Problem, QueryPart, RunInfo, Topics

TurnProgress = Callable[[int, int], AbstractContextManager[OnTurn]]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to answer, and with what."""

    topics: Path
    origin: EvidenceFiles
    model: str
    plan: Plan = Plan()
    mode: Mode | None = None  # None: only-response where a ranking is given, else automatic
    edition: str | None = None  # of the run; None: that of the topics
    run_name: str = "convagent"
    team: str = "convagent"
    min_probability: float | None = None  # `Plan.sure`; None: as is usual for the edition of the topics
    jobs: int | None = None  # topics at a time; None: as many as `concurrency`, else one
    cache: bool = True  # whether replies and vectors are kept, and taken from what is kept
    on: str = LOCAL  # where: `local`, `ray`, `ray://HOST:PORT`
    concurrency: int | None = None  # requests at a server at a time, of all workers; None: one for each job


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
        if trace.is_file() and not (run.exists() or resume or overwrite):
            remedy = "--resume goes on where it ends; --overwrite begins anew."
            raise UsageError("is of a run that was not finished", where=str(trace), remedy=remedy)
        if str(run) != "-":
            check_writable(run, overwrite or resume)
        check_writable(trace, overwrite or resume)
        return cls(run, trace, resume)


@dataclass(frozen=True, slots=True)
class RunReport:
    """What came of it."""

    turns: int
    run: Path
    trace: Path
    edition: str
    resumed: int
    problems: tuple[Problem, ...]
    without_model: Mapping[str, str]  # why, by turn id, where the model failed


def answer_file(request: RunRequest, outputs: Outputs, progress: TurnProgress) -> RunReport:
    """Answer all turns and write the run. Raises before any work for whatever can be known to be wrong by then."""
    topics = read_topics(request.topics)
    request = use_own_ranking(request, topics)
    mode = choose_mode(request)
    edition = request.edition or topics.edition
    info = RunInfo(request.run_name, mode, request.team, request.plan.parts)
    check_expressible(edition, info, topics, request.plan.responses)
    usual = load_edition(topics.edition).statement_threshold
    min_probability = usual if request.min_probability is None else request.min_probability
    tokens = load_edition(edition).limits.response_tokens(request.plan.responses)
    plan = replace(request.plan, min_probability=min_probability, response_tokens=tokens)
    evidence = open_evidence(request.origin, topics, plan)
    with open_backend(request.on, plan_workforce(request, topics, plan, evidence)) as backend:
        job = prepare_run(topics, evidence.ranking, backend.description, mode, plan)
        info = describe_run(job.settings, request.run_name, request.team)
        before = resume_trace(outputs.trace, job.settings) if outputs.resume else new_trace(outputs.trace, job.settings)
        with progress(len(topics.turn_ids()), len(before.replies)) as on_turn:
            trace = answer_remaining(job, backend, before, on_turn)
    problems = write_run(outputs.run, trace, topics, info, edition)
    done, failed = len(before.replies), trace.without_model
    return RunReport(len(trace.places), outputs.run, outputs.trace, edition, done, tuple(problems), failed)


def open_backend(name: str, workforce: Workforce) -> AbstractContextManager[Backend]:
    """The workers, opened where the name says. Raises `UsageError` for an unknown name, and what opening raises."""
    if name == LOCAL:
        return open_local(workforce)
    from agent.runs.backends.ray import open_ray

    return open_ray(name, workforce)


def plan_workforce(request: RunRequest, topics: Topics, plan: Plan, evidence: Evidence) -> Workforce:
    """A worker for each job, sharing the cores of this machine, the cache of replies, and what a server is asked."""
    jobs = request.jobs or request.concurrency or 1
    if request.model.startswith("scripted:") and (jobs > 1 or request.on != LOCAL):
        raise UsageError("a script is played from the top, by one worker: it takes neither --jobs nor --on")
    if request.concurrency and not is_server_address(request.model):
        raise UsageError("--concurrency is of a server's model", remedy="Name one: --model http://host:port/v1#name.")
    needs_vectors = bool(plan.retrieval_depth or plan.reading_depth or any(topic.ptkb for topic in topics.topics))
    threads = max(1, threads_to_use() // jobs)
    specification = WorkerSpecification(request.model, request.origin, plan, needs_vectors, threads, request.cache)
    return Workforce(
        specification,
        request.topics,
        evidence,
        count=max(1, min(jobs, len(topics.topics))),
        concurrency=request.concurrency or jobs,
    )


def parse_query_parts(named: str) -> tuple[QueryPart, ...]:
    """The parts of a query that are named, separated by commas. Raises `UsageError` for one that is none."""
    known = get_args(QueryPart)
    names = [name.strip() for name in named.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"no part of a query: {', '.join(unknown)} (available: {', '.join(known)})")
    return tuple(name for name in known if name in names)


def use_own_ranking(request: RunRequest, topics: Topics) -> RunRequest:
    """The request with the topics' own ranking (iKAT 2024) where an only-response run is given no other."""
    if request.mode == "only-response" and request.origin.ranking is None and topics.rankings:
        return replace(request, origin=replace(request.origin, ranking=request.topics))
    return request


def choose_mode(request: RunRequest) -> Mode:
    """Raises `UsageError` for a mode and a ranking that contradict each other."""
    ranking, mode = request.origin.ranking, request.mode
    if mode == "only-response" and ranking is None:
        remedy = "The topics bring none: give one with --ranking FILE."
        raise UsageError("--mode only-response needs a ranking", remedy=remedy)
    if mode == "automatic" and ranking is not None:
        raise UsageError("--mode automatic searches, so it takes no ranking", remedy="Leave one of the two out.")
    if ranking is None and request.origin.passages:
        raise UsageError("--passages are the texts of a ranking", remedy="Give --ranking too, or build an index.")
    return mode or ("only-response" if ranking is not None else "automatic")
