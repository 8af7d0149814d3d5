"""A whole run: every turn of a topics file answered, traced as it goes, and written in the form of its edition."""

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec

import prompts
from agent.flow import NOTHING
from agent.models.learned import QUERY_ENCODER, hash_learned
from agent.runs.evidence import Evidence
from agent.runs.oracle_labels import provide_labels
from agent.runs.source_digests import hash_sources
from agent.runs.trace import RunSettings, Trace, TraceLine, append_line, open_for_append, read_trace
from agent.runs.worker import Worker
from agent.runs.worker_pool import run_in_workers
from agent.tracks.rules import STRICT
from agent.tracks.run_files import encode_run, make_checker
from indexes.storage.files import write_atomically
from schemas.records import Mode, Plan, Problem, Provided, RunInfo, Topic, Topics, TurnResult

OnTurn = Callable[[TurnResult, float], None]


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run about to be made."""

    topics: Topics
    given: Mapping[str, Provided]  # by turn id
    sources: Evidence
    settings: RunSettings


def prepare_run(topics: Topics, sources: Evidence, worker: Worker, mode: Mode, plan: Plan) -> PreparedRun:
    """What the flow will see of the topics in this mode, and all that decides the run."""
    shown, given = provide_labels(topics) if mode == "manual" else (topics, {})
    ranking = sources.ranking
    if ranking is not None:
        given = {id: replace(given.get(id, NOTHING), hits=ranking.hits[id]) for id in topics.turn_ids()}
    settings = RunSettings(
        edition=topics.edition,
        topics=_sha256(shown.topics),
        turns=len(topics.turn_ids()),
        statements=sum(len(topic.ptkb) for topic in topics.topics),
        mode=mode,
        labels=_sha256(topics.labels) if mode == "manual" else "",
        ranking=ranking.digest if ranking else "",
        ranking_of_labels=bool(ranking and ranking.labels),
        passages=sources.digest,
        model=worker.llm.name,
        model_digest=worker.llm.digest,
        model_settings=worker.llm.settings,
        embedder=worker.embedder.name if worker.embedder else "",
        embedder_digest=worker.embedder.digest if worker.embedder else "",
        encoder_digest=hash_learned(QUERY_ENCODER) if worker.embedder and worker.embedder.encode_turn else "",
        prompts=prompts.digest(),
        plan=plan,
        convagent=version("convagent"),
        sources=hash_sources(),
        processor=_describe_processor(worker),
    )
    return PreparedRun(shown, given, sources, settings)


def _describe_processor(worker: Worker) -> str:
    if not (worker.llm.runs_here or worker.embedder):
        return ""
    from agent.models.weights import describe_processor

    return describe_processor()


def _sha256(record: object) -> str:
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def answer_remaining(job: PreparedRun, workers: Sequence[Worker], before: Trace, on_turn: OnTurn) -> Trace:
    """Answer what `before` has not, each turn traced at once, as many topics at a time as there are workers."""

    def answer(worker: Worker, topic: Topic) -> Iterator[TraceLine]:
        return worker.answer(topic, job.given, before.replies)

    with open_for_append(before) as file:
        for line in run_in_workers(answer, workers, job.topics.topics):
            append_line(file, line)
            on_turn(line.answered, line.seconds)
    return read_trace(before.path)


def describe_run(settings: RunSettings, name: str, team: str) -> RunInfo:
    """What a run made under these settings says about itself."""
    labels = settings.mode == "manual" or settings.ranking_of_labels
    return RunInfo(name, settings.mode, team, settings.plan.parts, labels)


def write_run(path: Path, trace: Trace, topics: Topics, info: RunInfo, edition: str) -> list[Problem]:
    """Write the run (to stdout where the path is `-`) and return the rules that it breaks: ours too are errors."""
    answered = (line.answered for line in trace.lines(topics.turn_ids()))
    checker = make_checker(edition, info, topics, STRICT)
    problems: list[Problem] = []
    chunks = encode_run(edition, answered, info, lambda turn: problems.extend(checker.check_turn(turn)))
    if str(path) == "-":
        sys.stdout.buffer.writelines(chunks)
    else:
        write_atomically(path, chunks)
    return [problem for problem in (*problems, *checker.check_all_seen()) if problem.severity == "error"]
