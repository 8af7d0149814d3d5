"""A whole run: every turn of a topics file answered, traced as it goes, and written in the form of its edition."""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec

import prompts
from agent.files import write_whole
from agent.flow import NOTHING, Tools, answer_topic
from agent.llm.none import NoModel
from agent.llm.seam import LLM
from agent.manual import manual
from agent.parallel import in_parallel
from agent.sources import Sources
from agent.trace import Line, Settings, Trace, append, read_trace, writing
from agent.tracks.run_files import checking, make_run
from indexes.vectors import Embedder
from schemas.records import Answered, Call, Given, Mode, Plan, Problem, RunInfo, Topic, Topics

OnTurn = Callable[[Answered, float], None]


@dataclass(frozen=True, slots=True)
class Worker:
    """What answers one topic at a time. `calls` is filled by model and search, and emptied after every turn."""

    llm: LLM
    embedder: Embedder | None
    calls: list[Call]

    def tools(self, sources: Sources, plan: Plan) -> Tools:
        listen = self.calls.append
        search, embed = sources.search(self.embedder, plan, listen), self.embedder.embed if self.embedder else None
        return Tools(self.llm, search, sources.read, plan, embed, NoModel(listen))


@dataclass(frozen=True, slots=True)
class Job:
    """A run about to be made."""

    topics: Topics
    given: Mapping[str, Given]  # by turn id
    sources: Sources
    settings: Settings


def prepare(topics: Topics, sources: Sources, worker: Worker, mode: Mode, plan: Plan) -> Job:
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
        model=worker.llm.name,
        model_digest=worker.llm.digest,
        embedder=worker.embedder.name if worker.embedder else "",
        embedder_digest=worker.embedder.digest if worker.embedder else "",
        prompts=prompts.digest(),
        plan=plan,
        convagent=version("convagent"),
    )
    return Job(shown, given, sources, settings)


def _sha256(record: object) -> str:
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def run(job: Job, workers: Sequence[Worker], before: Trace, on_turn: OnTurn) -> Trace:
    """Answer what `before` has not, each turn traced at once, as many topics at a time as there are workers."""
    with writing(before) as file:
        for line in in_parallel(partial(_answer, job, before.replies), workers, job.topics.topics):
            append(file, line)
            on_turn(line.answered, line.seconds)
    return read_trace(before.path)


def _answer(job: Job, done: Mapping[str, str], worker: Worker, topic: Topic) -> Iterator[Line]:
    started = time.perf_counter()
    for answered in answer_topic(topic, worker.tools(job.sources, job.settings.plan), job.given, done):
        calls = tuple(worker.calls)
        worker.calls.clear()
        yield Line(answered, calls, round(time.perf_counter() - started, 3))
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
