"""The figures of one system over a bed, and tables of them as Markdown and JSON, with the command beside each row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import mean

import msgspec

from agent.evaluation.answers import measure_turn
from agent.evaluation.ptkb import labels_of_topics, measure_ptkb
from agent.evaluation.report import ReportRequest, write_report
from agent.evaluation.scores import Qrels, measure_search
from agent.runs.evidence import PassageTexts
from agent.tracks.run_records import to_run_turns
from agent.turn.interface_sentences import starts_with_not_found
from benchmarks.bed import INDEX, QRELS, TOPICS, AnsweredBed, Bed, BenchRequest, System
from indexes.storage.files import write_atomically
from schemas.records import RunInfo

Figure = float | int | None  # a share or mean; a count; not measured


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one system, in the order of the columns, and the command that makes its run."""

    system: str
    command: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Systems compared by the same measures."""

    name: str  # one word: that of its place in a page
    about: str  # what is measured, over how many of what
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """What a benchmark found."""

    bench: str
    command: str
    version: str  # of convagent
    tables: tuple[Table, ...]


def format_figure(figure: Figure) -> str:
    """Counts as they are, shares and means with three digits and without a leading zero."""
    if figure is None:
        return "-"
    if isinstance(figure, int):
        return f"{figure:,}"
    return f"{figure:.3f}".replace("0.", ".", 1) if abs(figure) < 1 else f"{figure:.3f}"


def format_table(table: Table) -> str:
    """The table in Markdown."""
    lines = ["| " + " | ".join(["", *table.columns, "command"]).strip() + " |", "|---" * (len(table.columns) + 2) + "|"]
    for row in table.rows:
        cells = [row.system, *map(format_figure, row.figures), f"`{row.command}`"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def format_results(results: Results) -> str:
    """All tables of a benchmark, each below what it measures."""
    return "\n\n".join(f"{table.about}\n\n{format_table(table)}" for table in results.tables) + "\n"


Figures = dict[str, Figure]
RANKING = ("nDCG@5", "R@10", "R@100")


def make_table(
    name: str, about: str, answered: Mapping[System, AnsweredBed], measure: Callable[[AnsweredBed], Figures]
) -> Table:
    """A row for each system; the columns are what is measured of any of them."""
    found = {system: measure(run) for system, run in answered.items()}
    columns = tuple(dict.fromkeys(column for figures in found.values() for column in figures))
    rows = (
        Row(system.name, answered[system].command, tuple(figures.get(column) for column in columns))
        for system, figures in found.items()
    )
    return Table(name, about, columns, tuple(rows))


def measure_rankings(bed: Bed, run: AnsweredBed) -> Figures:
    """Over the turns with gold passages in the index; and the tokens that a model reads and writes for a turn."""
    scores = measure_search("", run.read_rankings(), bed.judged)
    read, written = run.count_tokens()
    return {**{measure: scores.mean(measure) for measure in RANKING}, "tokens read": read, "tokens written": written}


def measure_statements(bed: Bed, labels: Mapping[str, Qrels], run: AnsweredBed) -> Figures:
    """Macro F1 and nDCG@3 by each labels, and F1 over all turns by the topics' own choice."""
    chosen = {
        turn_id: {chosen.statement.id: 1.0 / rank for rank, chosen in enumerate(turn.selected_statements, start=1)}
        for turn_id, turn in run.read_turns().items()
    }
    figures: Figures = {}
    for name, judged in labels.items():
        scores = measure_ptkb("", chosen, judged)
        figures |= {f"{name} F1": scores.mean("F1"), f"{name} nDCG@3": scores.mean("nDCG@3")}
    own = labels_of_topics(bed.topics)
    return figures | ({"all turns F1": measure_ptkb("", chosen, own).mean("F1")} if own else {})


def measure_answers(bed: Bed, run: AnsweredBed, turn_ids: Sequence[str]) -> Figures:
    """ROUGE F with the canonical replies, what the cited passages support, what says that there is no answer, words."""
    texts, turns = PassageTexts({}, bed.index), run.read_turns()
    answered = {turn.turn_id: turn for turn in to_run_turns((turns[id] for id in turn_ids), RunInfo("bench"))}
    found = [measure_turn(answered[id], bed.topics.labels[id].reply, texts) for id in turn_ids]
    figures: Figures = {
        name: mean(values)
        for name in ("ROUGE-1", "ROUGE-2", "ROUGE-L", "supported")
        if (values := [turn[name] for turn in found if name in turn])
    }
    said = [turns[id].response.text for id in turn_ids]
    says_none = mean(starts_with_not_found(text) for text in said)
    return {**figures, "says none": float(says_none), "words": round(mean(len(text.split()) for text in said))}


def keep_turns(labels: Qrels, bed: Bed) -> Qrels:
    """The labels of the turns that are asked."""
    asked = set(bed.topics.turn_ids())
    return {turn_id: found for turn_id, found in labels.items() if turn_id in asked}


MARKDOWN, JSON, REPORT = "results.md", "results.json", "report.html"
REPORTED = ("default", "no model", "human rewrite")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tables of a benchmark, and the files with them."""

    results: Results
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class BenchedBed:
    """What came of a benchmark over a bed: its tables, and the runs by system, which a report can show."""

    bed: Bed
    tables: tuple[Table, ...]
    runs: Mapping[System, AnsweredBed]


def finish_bed(name: str, benched: BenchedBed, request: BenchRequest) -> Outcome:
    """Write the tables, and the page that shows where the runs differ."""
    outcome = finish(name, benched.tables, request)
    return replace(outcome, files=(*outcome.files, _write_report(benched)))


def _write_report(benched: BenchedBed) -> Path:
    """The page that shows where the runs differ, turn by turn."""
    folder = benched.bed.folder
    runs = tuple(run.trace for run in _choose_reported(benched).values())
    topics, page, qrels, index = (folder / name for name in (TOPICS, REPORT, QRELS, INDEX))
    return write_report(ReportRequest(runs, topics, page, qrels, index=index, overwrite=True))


def _choose_reported(benched: BenchedBed) -> dict[str, AnsweredBed]:
    """Three runs can be read side by side; where none of these three was made, the first."""
    runs = {system.name: run for system, run in benched.runs.items()}
    return {name: runs[name] for name in REPORTED if name in runs} or dict([next(iter(runs.items()))])


def finish(name: str, tables: Sequence[Table], request: BenchRequest) -> Outcome:
    """Write the tables."""
    results = Results(name, f"python -m benchmarks {name} --model {request.model}", version("convagent"), tuple(tables))
    files = {MARKDOWN: format_results(results).encode(), JSON: msgspec.json.format(msgspec.json.encode(results))}
    for file, data in files.items():
        write_atomically(request.folder / file, [data])
    return Outcome(results, tuple(request.folder / file for file in files))
