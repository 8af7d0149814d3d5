"""A benchmark as `convagent bench` runs it: its systems, its tables, its report, and the figures that are recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec

from agent.evaluation.answers import PassageSource
from agent.evaluation.bench.answering import AnsweredBed, BenchedBed, BenchRequest, Progress
from agent.evaluation.bench.bed import INDEX, QRELS, TOPICS
from agent.evaluation.bench.ikat import run_ikat
from agent.evaluation.bench.mtrag import run_mtrag
from agent.evaluation.bench.own.bench import run_own
from agent.evaluation.bench.own.questions import Halves
from agent.evaluation.bench.recorded import check_recordable, record_results
from agent.evaluation.bench.tables import Results, Table, format_results
from agent.evaluation.report.page import write_report
from agent.evaluation.report.request import LabelFiles, ReportRequest, RunFiles
from indexes.storage.files import write_atomically

MARKDOWN, JSON, REPORT = "results.md", "results.json", "report.html"
REPORTED = ("default", "no model", "human rewrite")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tables of a benchmark, and the files with them."""

    results: Results
    files: tuple[Path, ...]


def bench_ikat(request: BenchRequest, progress: Progress, record: Path | None = None) -> Outcome:
    """iKAT 2023 over the passages whose text is public."""
    check_recordable(record, request)
    return _finish_bed("ikat", run_ikat(request, progress), request, record)


def bench_mtrag(request: BenchRequest, progress: Progress, record: Path | None = None) -> Outcome:
    """MTRAG-UN."""
    check_recordable(record, request)
    return _finish_bed("mtrag", run_mtrag(request, progress), request, record)


def bench_own(request: BenchRequest, progress: Progress, half: Halves, record: Path | None = None) -> Outcome:
    """Own documents."""
    check_recordable(record, request)
    return _finish("own", run_own(request, progress, half), request, record)


def _finish_bed(name: str, benched: BenchedBed, request: BenchRequest, record: Path | None) -> Outcome:
    outcome = _finish(name, benched.tables, request, record)
    return replace(outcome, files=(*outcome.files, _write_report(benched)))


def _write_report(benched: BenchedBed) -> Path:
    """The page that shows where the runs differ, turn by turn."""
    folder = benched.bed.folder
    runs = tuple(RunFiles(run.run, run.trace, name=name) for name, run in _choose_reported(benched).items())
    labels, texts = LabelFiles(folder / QRELS), PassageSource(index=folder / INDEX)
    return write_report(ReportRequest(runs, folder / TOPICS, folder / REPORT, labels, texts, overwrite=True))


def _choose_reported(benched: BenchedBed) -> dict[str, AnsweredBed]:
    """Three runs can be read side by side; where none of these three was made, the first."""
    runs = {system.name: run for system, run in benched.runs.items()}
    return {name: runs[name] for name in REPORTED if name in runs} or dict([next(iter(runs.items()))])


def _finish(name: str, tables: Sequence[Table], request: BenchRequest, record: Path | None) -> Outcome:
    """Write the tables, and record them where that is wanted."""
    results = Results(name, f"convagent bench {name} --model {request.model}", version("convagent"), tuple(tables))
    files = {MARKDOWN: format_results(results).encode(), JSON: msgspec.json.format(msgspec.json.encode(results))}
    for file, data in files.items():
        write_atomically(request.folder / file, [data])
    if record:
        record_results(record, results)
    return Outcome(results, tuple(request.folder / file for file in files))
