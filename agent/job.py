"""A whole run: every turn of a topics file answered, traced as it goes, and written in the form of its edition."""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

import prompts
from agent.files import write_whole
from agent.flow import Tools, answer_topic
from agent.llm import open_model
from agent.search import Searcher
from agent.trace import Line, Settings, Trace, append, writing
from agent.tracks import make_run, run_problems
from indexes.passages import PassageIndex
from schemas.records import Answered, Call, Problem, RunInfo, Topics

OnTurn = Callable[[Answered, float], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A run about to be made. `calls` is filled by the model and emptied after every turn."""

    topics: Topics
    tools: Tools
    settings: Settings
    calls: list[Call]


def prepare(topics: Topics, index: PassageIndex, model: str, *, k: int, shown: int) -> Job:
    """Open everything a run needs. All that can be wrong with model or index is said here, before any work."""
    calls: list[Call] = []
    llm = open_model(model, calls.append)
    searcher = Searcher.over(index, k)
    settings = Settings(
        edition=topics.edition,
        topics=hashlib.sha256(msgspec.json.encode(topics.topics)).hexdigest(),
        index=hashlib.sha256(msgspec.json.encode(index.info)).hexdigest(),
        passages=len(index),
        model=llm.name,
        model_digest=llm.digest,
        prompts=prompts.digest(),
        k=k,
        shown=shown,
        convagent=version("convagent"),
    )
    return Job(topics, Tools(llm, searcher.search, searcher.read, shown), settings, calls)


def run(job: Job, trace_path: Path, before: Trace, on_turn: OnTurn) -> tuple[Answered, ...]:
    """Answer what `before` has not, each turn traced at once. All turns, in the order of the topics."""
    done = {line.answered.turn_id: line.answered for line in before.lines}
    with writing(trace_path, before) as file:
        for answered, seconds in _answer_all(job, done):
            append(file, Line(answered, tuple(job.calls), round(seconds, 3)))
            job.calls.clear()
            done[answered.turn_id] = answered
            on_turn(answered, seconds)
    return tuple(done[turn_id] for turn_id in job.topics.turn_ids())


def _answer_all(job: Job, done: dict[str, Answered]) -> Iterator[tuple[Answered, float]]:
    for topic in job.topics.topics:
        finished = [done[turn.id] for turn in topic.turns if turn.id in done]
        started = time.perf_counter()
        for answered in answer_topic(topic, job.tools, finished):
            yield answered, time.perf_counter() - started
            started = time.perf_counter()


def write_run(path: Path, answered: tuple[Answered, ...], topics: Topics, info: RunInfo, edition: str) -> list[Problem]:
    """Write the run (to stdout where the path is `-`) and return the rules that it breaks."""
    data = make_run(edition, answered, info)
    if str(path) == "-":
        sys.stdout.buffer.write(data)
    else:
        write_whole(path, data)
    return run_problems(data, topics, edition)
