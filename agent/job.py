"""A whole run: every turn of a topics file answered, traced as it goes, and written in the form of its edition."""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec

import prompts
from agent.files import write_whole
from agent.flow import NOTHING, Tools, answer_topic
from agent.llm.seam import LLM
from agent.manual import manual
from agent.sources import Sources
from agent.trace import Line, Settings, Trace, append, read_trace, writing
from agent.tracks.run_files import checking, make_run
from schemas.records import Answered, Call, Given, Mode, Plan, Problem, RunInfo, Topics

OnTurn = Callable[[Answered, float], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A run about to be made. `calls` is filled by model and search, and emptied after every turn."""

    topics: Topics
    given: Mapping[str, Given]  # by turn id
    tools: Tools
    settings: Settings
    calls: list[Call]


def prepare(topics: Topics, sources: Sources, llm: LLM, mode: Mode, plan: Plan, calls: list[Call]) -> Job:
    """What the flow will see of the topics in this mode, and all that decides the run."""
    shown, given = manual(topics) if mode == "manual" else (topics, {})
    ranking = sources.ranking
    if ranking is not None:
        given = {id: replace(given.get(id, NOTHING), hits=ranking.hits[id]) for id in topics.turn_ids()}
    settings = Settings(
        edition=topics.edition,
        topics=_sha256(shown.topics),
        turns=len(topics.turn_ids()),
        statements=sum(len(topic.ptkb) for topic in topics.topics),
        mode=mode,
        labels=_sha256(topics.labels) if mode == "manual" else "",
        ranking=ranking.digest if ranking else "",
        ranking_of_labels=bool(ranking and ranking.labels),
        passages=sources.digest,
        model=llm.name,
        model_digest=llm.digest,
        embedder=sources.embedder.name if sources.embedder else "",
        embedder_digest=sources.embedder.digest if sources.embedder else "",
        prompts=prompts.digest(),
        plan=plan,
        convagent=version("convagent"),
    )
    return Job(shown, given, Tools(llm, sources.search, sources.read, plan, sources.embed), settings, calls)


def _sha256(record: object) -> str:
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def run(job: Job, before: Trace, on_turn: OnTurn) -> Trace:
    """Answer what `before` has not, each turn traced at once."""
    with writing(before) as file:
        for answered, seconds in _answer_all(job, before.replies):
            append(file, Line(answered, tuple(job.calls), round(seconds, 3)))
            job.calls.clear()
            on_turn(answered, seconds)
    return read_trace(before.path)


def _answer_all(job: Job, done: Mapping[str, str]) -> Iterator[tuple[Answered, float]]:
    for topic in job.topics.topics:
        started = time.perf_counter()
        for answered in answer_topic(topic, job.tools, job.given, done):
            yield answered, time.perf_counter() - started
            started = time.perf_counter()


def run_info(settings: Settings, name: str, team: str) -> RunInfo:
    """What a run made under these settings says about itself."""
    labels = settings.mode == "manual" or settings.ranking_of_labels
    return RunInfo(name, settings.mode, team, settings.plan.parts, labels)


def write_run(path: Path, trace: Trace, topics: Topics, info: RunInfo, edition: str) -> list[Problem]:
    """Write the run (to stdout where the path is `-`) and return the rules that it breaks."""
    answered = (line.answered for line in trace.lines(topics.turn_ids()))
    rules = checking(edition, info, topics)
    problems: list[Problem] = []
    chunks = make_run(edition, answered, info, lambda turn: problems.extend(rules.turn(turn)))
    if str(path) == "-":
        sys.stdout.buffer.writelines(chunks)
    else:
        write_whole(path, chunks)
    return [*problems, *rules.end()]
