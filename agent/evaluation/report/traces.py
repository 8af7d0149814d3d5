"""What a report takes from a trace: the run itself, sentences with their passages, and what each step cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent.evaluation.report.request import OpenedRun, StepCost, TracedTurn
from agent.evaluation.scores import conversation_of
from agent.runs.run import describe_run
from agent.runs.trace import TraceLine, read_trace
from agent.tracks.run_records import RunTurn, to_run_turns
from indexes.storage.files import open_to_read
from schemas.records import Call, Mode, Passage, Statement, Topic, Topics, Turn

FIRST_BYTES = 1 << 16  # the settings, which are a trace's first line, are shorter


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """The turns of a trace, how they were answered, and the texts that were shown to its answer step, by passage id."""

    edition: str
    mode: Mode
    turns: dict[str, RunTurn]
    traced: dict[str, TracedTurn]
    texts: dict[str, Passage]


def is_trace(path: Path) -> bool:
    """Whether a file begins as a trace does. Raises `MissingError` where it cannot be read."""
    with open_to_read(path) as file:
        return b'"trace_version"' in file.readline(FIRST_BYTES)


def find_trace(run: Path) -> Path | None:
    """The trace that `convagent answer` wrote beside a run, where it is there."""
    stem = run.name.removesuffix(".jsonl").removesuffix(".json")
    beside = run.with_name(f"{stem}.trace.jsonl")
    return beside if beside != run and beside.is_file() else None


def read_traced_run(path: Path) -> ReadTrace:
    """Everything of a trace that a report shows. Raises `InvalidInputError` for a damaged one."""
    trace = read_trace(path)
    info = describe_run(trace.settings, path.name, "")
    found = ReadTrace(trace.settings.edition, trace.settings.mode, {}, {}, {})
    for line in trace.lines():
        [turn] = to_run_turns([line.answered], info)
        found.turns[turn.turn_id] = turn
        found.traced[turn.turn_id] = _describe_turn(line)
        found.texts.update((passage.id, passage) for passage in line.answered.passages)
    return found


def _describe_turn(line: TraceLine) -> TracedTurn:
    answered = line.answered
    return TracedTurn(
        answered.query.utterance,
        answered.query.standalone,
        tuple(chosen.statement for chosen in answered.selected_statements),
        answered.response.sentences,
        tuple(sum_steps(line.calls)),
        line.seconds,
        answered.without_model,
    )


def topics_of_traces(runs: Iterable[OpenedRun]) -> Topics:
    """As much of the topics as traces know: what was asked, and the statements that were chosen. No labels."""
    turns: dict[str, dict[str, Turn]] = {}
    statements: dict[str, dict[str, Statement]] = {}
    for run in runs:
        for turn_id, traced in run.traced.items():
            topic = conversation_of(turn_id)
            turns.setdefault(topic, {}).setdefault(turn_id, Turn(turn_id, traced.utterance))
            statements.setdefault(topic, {}).update({chosen.id: chosen for chosen in traced.statements})
    topics = (Topic(id, tuple(statements[id].values()), tuple(found.values())) for id, found in turns.items())
    return Topics("", tuple(topics), {})


def sum_steps(calls: Iterable[Call]) -> list[StepCost]:
    """The cost of each step, in the order of their first calls."""
    by_step: dict[str, list[Call]] = {}
    for call in calls:
        by_step.setdefault(call.step, []).append(call)
    return [
        StepCost(
            step,
            len(found),
            sum(call.tokens_read for call in found),
            sum(call.tokens_written for call in found),
            sum(call.seconds for call in found),
        )
        for step, found in by_step.items()
    ]
