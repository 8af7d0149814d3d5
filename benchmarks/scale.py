"""What larger collections and more machines would take: measured here, simulated for more, calculated for the rest.

    python benchmarks/scale.py runs TOPICS INDEX [--model none] [--turns 16000] [--json FILE]
    python benchmarks/scale.py again RUNS.json [--turns 16000] [--concurrency 16] [--batch-growth 0.05]
    python benchmarks/scale.py plan ROWS.json ... [--passages 116m] [--shards 1,8,32] [--vectors-a-second 20]

`runs` answers the topics with one job and with two, in this process, and notes when the last turn is done. From the
seconds of their turns the same runs are simulated (`benchmarks/turn_simulation.py`): how near that comes says what the
rest is worth. Then longer runs are simulated, of conversations drawn whole from these, over 1 to 64 workers whose
machines fail. There a turn takes the processor's seconds that it took here with one job (with CONVAGENT_THREADS=1: what
it takes on a core of its own, whatever runs beside this), and its requests to a server the time that they took.
`again` simulates other deployments from what `runs --json` wrote.

`plan` takes the rows that `benchmarks/index.py --json` wrote for several sizes, fits power laws to them, and says what
these would mean for a large collection in shards, one machine each.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from os import getloadavg
from pathlib import Path

import msgspec
import numpy as np

from agent.models.registry import is_server_address
from agent.runs.answer_topics import OnTurn, Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.trace import TraceLine, read_trace
from agent.tracks.files import read_topics
from benchmarks.growth import PowerLaw, fit_power_law
from benchmarks.index import MEASURED, MadeUp, parse_size
from benchmarks.turn_simulation import Conversation, Deployment, Outcome, ServiceTime, draw_conversations, simulate
from indexes.corpora.corpus import find_corpus
from schemas.records import Plan, TurnResult

WORKERS = (1, 2, 4, 8, 16, 32, 64)
REPEATS = 20  # simulations of a row, each of other conversations and other failures
READ = 50_000  # passages, to see how fast they are read
HOUR = 3600


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run that was made here."""

    jobs: int
    makespan: float  # seconds from the first turn's beginning to the last one's end; the models were open
    conversations: tuple[Conversation, ...]
    undisturbed: tuple[Conversation, ...]  # the same with the processor's seconds of one job in the place of a worker's

    @property
    def seconds_a_turn(self) -> float:
        return statistics.mean(turn.seconds for conversation in self.conversations for turn in conversation)


def measure_run(request: RunRequest) -> MeasuredRun:
    """Answer the topics, with nothing known from before."""
    finished, processor = [time.perf_counter()], [time.process_time()]

    def note_turn(_answered: TurnResult, _seconds: float) -> None:
        finished.append(time.perf_counter())
        processor.append(time.process_time())

    @contextmanager
    def note_times(_total: int, _done: int) -> Iterator[OnTurn]:
        finished[0], processor[0] = time.perf_counter(), time.process_time()
        yield note_turn

    with tempfile.TemporaryDirectory(prefix="convagent-benchmark-") as place:
        outputs = Outputs(Path(place) / "run.json", Path(place) / "run.trace.jsonl", resume=False)
        answer_file(replace(request, cache=False), outputs, note_times)
        trace = read_trace(outputs.trace)
        lines = list(trace.lines())
    turns = {line.answered.turn_id: to_service_time(line) for line in lines}
    alone = {
        line.answered.turn_id: ServiceTime(end - start, turns[line.answered.turn_id].requests)
        for line, (start, end) in zip(lines, pairwise(processor), strict=True)
    }
    asked = [[turn.id for turn in topic.turns] for topic in read_topics(request.topics).topics]
    by_topic = [tuple(tuple(times[id] for id in ids) for ids in asked) for times in (turns, alone)]
    return MeasuredRun(request.jobs or 1, finished[-1] - finished[0], *by_topic)


def to_service_time(line: TraceLine) -> ServiceTime:
    """What a turn took; requests to a server by themselves."""
    requests = tuple(call.seconds for call in line.calls if call.requests)
    return ServiceTime(max(0.0, line.seconds - sum(requests)), requests)


def warm_up(request: RunRequest) -> None:
    """One conversation without a model: what is only loaded when it is needed is loaded."""
    with tempfile.TemporaryDirectory(prefix="convagent-benchmark-") as place:
        first = Path(place) / "topics.json"
        first.write_text(json.dumps(json.loads(request.topics.read_text(encoding="utf-8"))[:1]), encoding="utf-8")
        measure_run(replace(request, topics=first, model="none"))


def print_comparison(runs: Sequence[MeasuredRun], server_takes: int | None) -> None:
    """Measured and simulated makespans of the same turns. Between two jobs of one machine nothing is for free."""
    first = runs[0]
    print("| jobs | s a turn | makespan, s: measured | simulated from its own turns | from those of one job |")
    print("|---|---|---|---|---|")
    for run in runs:
        own = simulate(run.conversations, Deployment(run.jobs)).makespan
        foreseen = simulate(first.conversations, Deployment(run.jobs, server_takes)).makespan
        cells = [f"{seconds:.1f} ({seconds / run.makespan:.2f})" for seconds in (own, foreseen)]
        print(f"| {run.jobs} | {run.seconds_a_turn:.3f} | {run.makespan:.1f} | {cells[0]} | {cells[1]} |")


def print_simulations(measured: Sequence[Conversation], options: argparse.Namespace) -> None:
    """Longer runs over more workers."""
    print(f"\n{options.turns:,} turns drawn from these, means of {REPEATS} simulations (5 to 95 % of the makespan);")
    print(f"a machine fails every {options.failure_hours:g} h and is back after {options.restart_seconds:g} s")
    print("\n| workers | turns an hour | makespan, h | speed-up | a turn, s: median, 95 %, 99 % | failures | lost, s |")
    print("|---|---|---|---|---|---|---|")
    alone = 0.0
    for workers in WORKERS:
        outcomes = list(_repeat(measured, workers, options))
        row = summarise(workers, outcomes)
        alone = alone or row["makespan"]
        print(
            f"| {workers} | {row['turns_an_hour']:,.0f} | {row['makespan'] / HOUR:.2f} "
            f"({row['makespan_5'] / HOUR:.2f} to {row['makespan_95'] / HOUR:.2f}) "
            f"| {alone / row['makespan']:.1f} | {row['turn_50']:.2f}, {row['turn_95']:.2f}, "
            f"{row['turn_99']:.2f} | {row['failures']:.1f} | {row['lost']:.1f} |",
            flush=True,
        )


def _repeat(measured: Sequence[Conversation], workers: int, options: argparse.Namespace) -> Iterator[Outcome]:
    deployment = Deployment(
        workers,
        options.concurrency,
        options.batch_growth,
        HOUR * options.failure_hours,
        options.restart_seconds,
    )
    for seed in range(REPEATS):
        yield simulate(draw_conversations(measured, options.turns, seed), deployment, seed)


def summarise(workers: int, outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Means over the outcomes; percentiles of turns over all turns."""
    makespans = [outcome.makespan for outcome in outcomes]
    turns = np.concatenate([outcome.turns for outcome in outcomes])
    return {
        "workers": workers,
        "turns_an_hour": statistics.mean(outcome.turns_an_hour for outcome in outcomes),
        "makespan": statistics.mean(makespans),
        **{f"makespan_{part}": float(np.percentile(makespans, part)) for part in (5, 95)},
        **{f"turn_{part}": float(np.percentile(turns, part)) for part in (50, 95, 99)},
        "failures": statistics.mean(outcome.failures for outcome in outcomes),
        "lost": statistics.mean(outcome.lost for outcome in outcomes),
    }


def run_and_simulate(options: argparse.Namespace) -> None:
    """The command `runs`."""
    request = RunRequest(options.topics, EvidenceFiles(options.index), options.model, Plan(answer=options.answer))
    warm_up(request)
    runs = [measure_run(replace(request, jobs=jobs)) for jobs in (1, 2)]
    turns = sum(len(conversation) for conversation in runs[0].conversations)
    alone = statistics.mean(turn.seconds for conversation in runs[0].undisturbed for turn in conversation)
    print(f"--model {options.model}: {turns} turns, each with one job {alone:.3f} s of the processor and of a server;")
    print(f"the machine's load is {getloadavg()[0]:.0f}\n")
    print_comparison(runs, options.server_takes if is_server_address(options.model) else None)
    print_simulations(runs[0].undisturbed, options)
    if options.json:
        options.json.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n", encoding="utf-8")


def simulate_again(options: argparse.Namespace) -> None:
    """The command `again`."""
    first, *_ = msgspec.json.decode(options.runs.read_bytes(), type=list[MeasuredRun])
    print_simulations(first.undisturbed, options)


def read_laws(files: Sequence[Path]) -> dict[str, PowerLaw]:
    """How each figure of our index grows, by the rows of `benchmarks/index.py --json`."""
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    ours = [row for row in rows if row["system"] == "convagent"]
    sizes = [row["passages"] for row in ours]
    print(f"{len(ours)} measurements of {min(sizes):,} to {max(sizes):,} passages\n")
    fields = ("processor_seconds", *(field for field in MEASURED if field != "seconds"))  # whatever ran beside
    return {field: fit_power_law(sizes, [row[field] for row in ours]) for field in fields}


def print_laws(laws: dict[str, PowerLaw], passages: int) -> None:
    print(f"| | exponent (95 %) | of {passages:,} passages (95 %) |\n|---|---|---|")
    for field, law in laws.items():
        low, high = law.predict_interval(passages)
        name = MEASURED.get(field, "s of the processor to build")
        span = f"{law.predict(passages):,.0f} ({low:,.0f} to {high:,.0f})"
        print(f"| {name} | {law.exponent:.2f} ± {law.margin:.2f} | {span} |")


def measure_reading() -> float:
    """Seconds of the processor for one passage file to be read and understood, a passage; each shard reads them all."""
    with tempfile.TemporaryDirectory(prefix="convagent-benchmark-") as place:
        passages = Path(place) / "passages.jsonl"
        MadeUp().write(passages, READ)
        started = time.process_time()
        deque(find_corpus([passages]), maxlen=0)
        return (time.process_time() - started) / READ


def print_plan(laws: dict[str, PowerLaw], options: argparse.Namespace) -> None:
    """What the collection would take in shards of one size, each on a machine like this one."""
    reading = measure_reading() * options.passages
    indexing = max(0.0, laws["processor_seconds"].predict(options.passages) - reading)
    print(f"\nreading all passages: {reading / HOUR:.2f} h of one core, on every machine")
    print(
        "| shards | passages each | h to build | GB disk each, all | GB memory | h to embed | machine hours | price |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for shards in options.shards:
        each = options.passages / shards
        build = (reading + indexing / shards / options.cores) / HOUR
        disk = laws["disk_megabytes"].predict(each) / 1000
        memory = laws["peak_megabytes"].predict(each) / 1000
        embed = each / options.vectors_a_second / HOUR
        hours = shards * (build + embed)
        print(
            f"| {shards} | {each:,.0f} | {build:.2f} | {disk:.1f}, {shards * disk:.0f} | {memory:.1f} "
            f"| {embed:,.1f} | {hours:,.0f} | {hours * options.price:,.0f} |"
        )


def plan(options: argparse.Namespace) -> None:
    """The command `plan`."""
    laws = read_laws(options.rows)
    print_laws(laws, options.passages)
    print_plan(laws, options)


def build_parser() -> argparse.ArgumentParser:
    """The command line of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("runs")
    runs.set_defaults(run=run_and_simulate)
    runs.add_argument("topics", type=Path)
    runs.add_argument("index", type=Path)
    runs.add_argument("--model", default="none")
    runs.add_argument("--answer", choices=("auto", "extract", "write"), default="auto")
    runs.add_argument("--server-takes", type=int, help="requests that the measured server computes at a time")
    runs.add_argument("--json", type=Path, metavar="FILE", help="what was measured")
    again = commands.add_parser("again")
    again.set_defaults(run=simulate_again)
    again.add_argument("runs", type=Path)
    for command in (runs, again):
        command.add_argument("--turns", type=int, default=16_000, help="of a simulated run")
        command.add_argument("--concurrency", type=int, help="requests at a time")
        command.add_argument("--batch-growth", type=float, default=0.0, help="of a request's seconds by each beside it")
        command.add_argument("--failure-hours", type=float, default=24.0, help="between two failures of a machine")
        command.add_argument("--restart-seconds", type=float, default=60.0)
    planned = commands.add_parser("plan")
    planned.set_defaults(run=plan)
    planned.add_argument("rows", type=Path, nargs="+")
    planned.add_argument("--passages", type=parse_size, default=parse_size("116m"))
    planned.add_argument("--shards", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8, 32])
    planned.add_argument("--cores", type=int, default=2, help="of a machine, that index; one reads")
    planned.add_argument("--vectors-a-second", type=float, default=20.0, help="of a machine")
    planned.add_argument("--price", type=float, default=0.1, help="of a machine hour: put in yours")
    return parser


def main() -> None:
    options = build_parser().parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
