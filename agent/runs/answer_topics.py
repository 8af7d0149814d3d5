"""`convagent answer`: from a topics file to a run file and its trace."""

import hashlib
import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar, get_args

import msgspec

from agent.flow import NOTHING
from agent.models.local.hardware import threads_to_use
from agent.models.registry import is_server_address
from agent.runs.evidence import Evidence, EvidenceFiles, open_evidence
from agent.runs.trace import RunSettings, Trace, append_line, open_for_append, read_trace, resume_trace
from agent.runs.worker import LOCAL, AnswerTasks, Backend, TopicTask, WorkerSpecification, Workforce, open_local
from agent.tracks.files import check_expressible, encode_run, read_topics
from agent.tracks.registry import load_edition
from agent.tracks.rules import Checks, RunChecker
from agent.tracks.run_records import RunTurn
from indexes.storage.files import check_writable, write_atomically
from schemas.errors import UsageError, list_with_limit
from schemas.records import (
    Message,
    Mode,
    Plan,
    Problem,
    Provided,
    QueryPart,
    RunInfo,
    ScoredStatement,
    Topic,
    Topics,
    Turn,
    TurnLabels,
    TurnResult,
)

log = logging.getLogger("convagent")
GOLD_SCORE = 1.0  # the score of a statement that a person chose
T = TypeVar("T")
OnTurn = Callable[[TurnResult, float], None]  # is handed a turn and its seconds
TurnProgress = Callable[[int, int], AbstractContextManager[OnTurn]]


@dataclass(frozen=True, slots=True)
class RunRequest:
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
    mode, origin = choose_mode(request, topics)
    request = replace(request, origin=origin)
    edition = request.edition or topics.edition
    info = RunInfo(request.run_name, mode, request.team, request.plan.parts)
    check_expressible(edition, info, topics, request.plan.responses)
    usual = load_edition(topics.edition).statement_threshold
    min_probability = usual if request.min_probability is None else request.min_probability
    tokens = load_edition(edition).rules.response_tokens(request.plan.responses)
    plan = replace(request.plan, min_probability=min_probability, response_tokens=tokens)
    evidence = open_evidence(request.origin, topics, plan)
    with open_backend(request.on, plan_workforce(request, topics, plan, evidence)) as (made_of, answer):
        shown, given = provide_labels(topics) if mode == "manual" else (topics, {})
        if ranking := evidence.ranking:
            given = {id: replace(given.get(id, NOTHING), hits=ranking.hits[id]) for id in topics.turn_ids()}
        settings = RunSettings(
            edition=topics.edition,
            topics=_sha256(shown.topics),
            turns=len(topics.turn_ids()),
            mode=mode,
            labels=_sha256(topics.labels) if mode == "manual" else "",
            ranking=ranking.digest if ranking else "",
            ranking_of_labels=bool(ranking and ranking.labels),
            plan=plan,
            **asdict(made_of),
        )
        before = resume_trace(outputs.trace, settings) if outputs.resume else Trace(outputs.trace, settings)
        with progress(settings.turns, len(before.replies)) as on_turn:
            trace = _answer_remaining(shown, given, answer, before, on_turn)
    problems = write_run(outputs.run, trace, topics, settings.describe_run(request.run_name, request.team), edition)
    done, failed = len(before.replies), trace.without_model
    return RunReport(len(trace.places), outputs.run, outputs.trace, edition, done, tuple(problems), failed)


def _sha256(record: object) -> str:
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def _answer_remaining(
    topics: Topics, given: Mapping[str, Provided], answer: AnswerTasks, before: Trace, on_turn: OnTurn
) -> Trace:
    """Answer what `before` has not, each turn traced at once, as many topics at a time as the backend has workers."""

    def pick(values: Mapping[str, T], topic: Topic) -> dict[str, T]:
        return {turn.id: values[turn.id] for turn in topic.turns if turn.id in values}

    tasks = [TopicTask(topic, pick(given, topic), pick(before.replies, topic)) for topic in topics.topics]
    with open_for_append(before) as file:
        for line in answer(tasks, before.lines(before.replies)):
            append_line(file, line)
            on_turn(line.answered, line.seconds)
    return read_trace(before.path)


def write_run(path: Path, trace: Trace, topics: Topics, info: RunInfo, edition: str) -> list[Problem]:
    """Write the run (to stdout where the path is `-`) and return the rules that it breaks, ours too.

    A turn for which there was no passage at all, which was said before it was answered, keeps the official rules alone.
    """
    answered = (line.answered for line in trace.lines(topics.turn_ids()))
    checker = RunChecker(load_edition(edition).rules, topics, info, Checks())
    problems: list[Problem] = []

    def check(turn: RunTurn) -> None:
        has_passages = any(response.passages is None or response.passages for response in turn.responses)
        problems.extend(p for p in checker.check_turn(turn) if has_passages or p.severity == "error")

    chunks = encode_run(edition, answered, info, check)
    if str(path) == "-":
        sys.stdout.buffer.writelines(chunks)
    else:
        write_atomically(path, chunks)
    return [*problems, *checker.check_all_seen()]


def open_backend(name: str, workforce: Workforce) -> AbstractContextManager[Backend]:
    """The workers, opened where the name says. Raises `UsageError` for an unknown name, and what opening raises."""
    if name == LOCAL:
        return open_local(workforce)
    from agent.runs.ray import open_ray

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


def choose_mode(request: RunRequest, topics: Topics) -> tuple[Mode, EvidenceFiles]:
    """The mode, and the files, with the topics' own ranking (iKAT 2024) where an only-response run is given no other.

    Raises `UsageError` for a mode and a ranking that contradict each other.
    """
    mode, origin = request.mode, request.origin
    if mode == "only-response" and origin.ranking is None:
        if not topics.rankings:
            remedy = "The topics bring none: give one with --ranking FILE."
            raise UsageError("--mode only-response needs a ranking", remedy=remedy)
        origin = replace(origin, ranking=request.topics)
    if mode == "automatic" and origin.ranking is not None:
        raise UsageError("--mode automatic searches, so it takes no ranking", remedy="Leave one of the two out.")
    if origin.ranking is None and origin.passages:
        raise UsageError("--passages are the texts of a ranking", remedy="Give --ranking too, or build an index.")
    return mode or ("only-response" if origin.ranking is not None else "automatic"), origin


def provide_labels(topics: Topics) -> tuple[Topics, Mapping[str, Provided]]:
    """The topics with the earlier turns as a person rewrote them, and what each turn itself is given.

    An earlier utterance becomes its human rewrite with its gold statements. A turn whose rewrite is empty, of which the
    organisers' own files have some, is asked as it was uttered; that is said once.
    """
    missing = [id for id, labels in topics.labels.items() if not labels.human_rewrite.strip()]
    if missing:
        listed = ", ".join(list_with_limit(missing, 3, "and {} more"))
        log.warning("no human rewrite of turn %s: the utterance is taken as it is", listed)
    given = {
        turn.id: _provide_turn(topic, turn, topics.labels[turn.id]) for topic in topics.topics for turn in topic.turns
    }
    rewritten = tuple(_rewrite_history(topic, given) for topic in topics.topics)
    return replace(topics, topics=rewritten), given


def _provide_turn(topic: Topic, turn: Turn, labels: TurnLabels) -> Provided:
    statements = {statement.id: ScoredStatement(statement, GOLD_SCORE) for statement in topic.ptkb}
    gold = tuple(statements[id] for id in dict.fromkeys(labels.statement_ids) if id in statements)
    return Provided(labels.human_rewrite.strip() or turn.utterance, gold)


def _rewrite_history(topic: Topic, given: Mapping[str, Provided]) -> Topic:
    """An earlier turn says its rewrite and its statements."""
    provided = [given[turn.id] for turn in topic.turns]
    said = [" ".join([p.human_rewrite, *(chosen.statement.text for chosen in p.statements or ())]) for p in provided]
    turns = []
    for number, turn in enumerate(topic.turns):
        history = turn.history
        if history is not None and len(history) == 2 * number:  # one utterance and one reply for every earlier turn
            history = tuple(message if n % 2 else Message("user", said[n // 2]) for n, message in enumerate(history))
        turns.append(replace(turn, history=history))
    return replace(topic, turns=tuple(turns))
