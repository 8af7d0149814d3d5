"""A bed answered by one system after the other, each with a trace: what is broken off goes on where it ended."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.evaluation.bench.bed import INDEX, RANKING, TOPICS, Bed
from agent.evaluation.bench.systems import NO_MODEL, System, format_command
from agent.evaluation.bench.tables import Table
from agent.runs.answer_topics import Outputs, RunRequest, TurnProgress, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.trace import read_trace
from schemas.errors import UsageError
from schemas.progress import StageProgress
from schemas.records import Plan, TurnResult

log = logging.getLogger("convagent")
Way = Literal["", "given", "clarify"]  # as a run; from the gold passages; asking back


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What a benchmark reads, where it writes, and how much of it is run."""

    data: Path
    folder: Path
    model: str = "smollm2"
    only: tuple[str, ...] = ()  # names of systems; none: all
    limit: int | None = None  # of conversations
    jobs: int = 1
    resume: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How long work shows how far it is: turns, and the stages before them."""

    turns: TurnProgress
    stages: StageProgress


@dataclass(frozen=True, slots=True)
class AnsweredBed:
    """What came of one system: its run and trace, which are read when they are measured, and the command for them."""

    command: str
    run: Path
    trace: Path
    embedder: str | None

    def read_turns(self) -> dict[str, TurnResult]:
        """The results by turn id."""
        return {line.answered.turn_id: line.answered for line in read_trace(self.trace).lines()}

    def read_rankings(self) -> dict[str, dict[str, float]]:
        """Passage ids with their scores, by turn id."""
        return {turn_id: {hit.id: hit.score for hit in turn.hits} for turn_id, turn in self.read_turns().items()}

    def count_tokens(self) -> tuple[int, int]:
        """Tokens that a model reads and writes for a turn on average, also where a reply came from the cache."""
        turns = [line.calls for line in read_trace(self.trace).lines()]
        calls = [call for each in turns for call in each]
        read = sum(call.tokens_read + call.cached_tokens_read for call in calls)
        written = sum(call.tokens_written + call.cached_tokens_written for call in calls)
        return round(read / len(turns)), round(written / len(turns))


@dataclass(frozen=True, slots=True)
class BenchedBed:
    """What came of a benchmark over a bed: its tables, and the runs by system, which a report can show."""

    bed: Bed
    tables: tuple[Table, ...]
    runs: Mapping[System, AnsweredBed]


def choose_systems(systems: Sequence[System], request: BenchRequest) -> list[System]:
    """Those that are asked for; with `--model none` those that ask a model are left out: there they are no systems."""
    names = [system.name for system in systems]
    if unknown := [name for name in request.only if name not in names]:
        raise UsageError(f"no system: {', '.join(unknown)} (available: {', '.join(names)})")
    wanted = [system for system in systems if not request.only or system.name in request.only]
    return [system for system in wanted if request.model != "none" or not system.asks_model] or [NO_MODEL]


def answer_bed(bed: Bed, system: System, request: BenchRequest, show: TurnProgress, way: Way = "") -> AnsweredBed:
    """Answer all turns, or those that the trace does not have yet."""
    name = "-".join(filter(None, (system.slug, way)))
    outputs = Outputs(bed.folder / f"{name}.run.json", bed.folder / f"{name}.run.trace.jsonl", request.resume)
    asked = make_request(bed, system, request, way)
    log.info("%s%s", system.name, f" ({way})" if way else "")
    report = answer_file(asked, outputs, show)
    return AnsweredBed(format_command(asked, report.run), report.run, report.trace, system.embedder)


def make_request(bed: Bed, system: System, request: BenchRequest, way: Way) -> RunRequest:
    """What `convagent answer` would be asked for."""
    origin = EvidenceFiles(bed.folder / INDEX, embedder=system.embedder)
    if way == "given":
        origin = replace(origin, ranking=bed.folder / RANKING, on_error="skip")
    return RunRequest(
        bed.folder / TOPICS,
        origin,
        request.model if system.asks_model else "none",
        Plan(k=bed.k, query=system.query, clarify=way == "clarify"),
        None if way == "given" else system.mode,
        min_probability=system.min_probability,
        jobs=request.jobs,
    )
