"""What `convagent show` prints: a conversation of a trace, or one turn of several runs side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.evaluation.report.reading import ErrorCollection, ReportRequest, open_material
from agent.evaluation.report.turn_view import Mark, RankedPassage, RunTurnView, StepCost, TurnView, Words, view_turn_of
from agent.runs.trace import read_trace
from agent.terminal.escaping import defuse_citations
from agent.terminal.output import open_stdout, to_one_line, to_plain_text
from indexes.text.control_characters import strip_control_characters, strip_directions
from schemas.errors import InvalidInputError, UsageError, list_with_limit

if TYPE_CHECKING:
    from rich.text import Text

    from schemas.records import TurnResult

COLUMN = 38  # characters that a run needs beside another
LABEL = 12
TURNS_LISTED = 20
MARKS: dict[Mark, tuple[str, str]] = {
    "right": ("✓ right", "green"),
    "wrong": ("✗ wrong", "red"),
    "missed": ("○ missed", "red"),
    "chosen": ("•", "cyan"),
    "": ("", ""),
}
ASSIGNMENTS = {"support": "✓ covered", "partial_support": "◐ partly", "not_support": "○ missed", "": "-"}


def choose_trace(traces: Sequence[Path]) -> Path:
    """The one trace whose conversation is shown. Raises `UsageError` where there are several."""
    if len(traces) > 1:
        remedy = "Give --turn too, such as --turn 9-1_3; `convagent report` compares whole runs."
        raise UsageError("several runs are shown one turn at a time", remedy=remedy)
    return traces[0]


def show_conversation(path: Path, topic: str | None) -> None:
    """One conversation of a trace, by default its first. Raises `InvalidInputError` where it holds no such topic."""
    trace = read_trace(path)
    topics = list(dict.fromkeys(_topic_of(turn_id) for turn_id in trace.places))
    if not topics:
        raise InvalidInputError("holds no answered turn", where=str(path))
    wanted = topic if topic is not None else topics[0]
    if wanted not in topics:
        raise InvalidInputError(f"holds no topic {wanted!r} (there are: {', '.join(topics)})", where=str(path))
    console = open_stdout()
    settings = trace.settings
    about = f"{settings.model}, {settings.edition}, {settings.mode}"
    console.print(to_plain_text(f"Conversation {wanted}", "bold"), to_plain_text(f"({about})\n", "dim"))
    for line in trace.lines(turn_id for turn_id in trace.places if _topic_of(turn_id) == wanted):
        _show_answered(console, line.answered)


def _topic_of(turn_id: str) -> str:
    return turn_id.rpartition("_")[0]


def _show_answered(console: Any, turn: "TurnResult") -> None:
    from rich.markup import escape
    from rich.table import Table

    def row(label: str, text: str, style: str = "") -> None:
        text = strip_directions(strip_control_characters(text))
        line = Table.grid(padding=(0, 2))
        line.add_column(width=12, justify="right", style="dim")
        line.add_column(style=style)
        line.add_row(escape(label), text)
        console.print(line)

    console.rule(to_plain_text(turn.turn_id, "dim"), align="left", style="dim")
    row("asked", escape(turn.query.utterance), "bold")
    row("searched for", escape(turn.query.standalone))
    for chosen in turn.selected_statements:
        row("knowing", escape(f"{chosen.statement.text}  ({chosen.score:+.2f})"), "cyan")
    if not turn.selected_statements:
        row("knowing", "nothing about the person that matters here", "dim")
    sources = {id: str(n) for n, id in enumerate(turn.response.used, start=1)}
    marked = " ".join(
        f"{escape(defuse_citations(s.text))} [green]\\[{','.join(sources[id] for id in s.passage_ids)}][/]"
        if s.passage_ids
        else escape(defuse_citations(s.text))
        for s in turn.response.sentences
    )
    if turn.response.direct:
        row("", escape(defuse_citations(turn.response.direct)), "bold")
    row("answer", marked or f"[dim]({'none was wanted' if turn.hits else 'nothing was found'})[/]")
    ranks = {hit.id: rank for rank, hit in enumerate(turn.hits, start=1)}
    for id, number in sources.items():
        rank = f"rank {ranks[id]} of {len(turn.hits)}" if id in ranks else "not in the ranking"
        row(f"[{number}]", escape(f"{to_one_line(id)}  ({rank})"), "green")
    console.print()


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the comparison: what it is, and a cell for each run."""

    label: str
    cells: "tuple[Text, ...]"


def show_turn(request: ReportRequest, turn_id: str) -> None:
    """One turn of all runs. Raises `InvalidInputError` where none of them has it, naming those there are."""
    material = open_material(request, ErrorCollection())
    turn_ids = material.topics.turn_ids()
    if turn_id not in turn_ids:
        there_are = ", ".join(list_with_limit(turn_ids, TURNS_LISTED))
        raise InvalidInputError(f"there is no turn {turn_id!r} (there are: {there_are})")
    view = view_turn_of(material, turn_id)
    console = open_stdout()
    console.rule(to_plain_text(turn_id, "dim"), align="left", style="dim")
    _print_rows(console, [], list(_describe_question(view)))
    console.print()
    _print_rows(console, [run.name for run in material.runs], list(_compare(view)))


def _print_rows(console: Any, names: Sequence[str], rows: Sequence[Row]) -> None:
    """A table with a column for each run; where there is no room for that, one table after the other."""
    columns = max(1, len(names))
    if console.width >= LABEL + columns * COLUMN or columns == 1:
        console.print(_make_table(names, rows))
        return
    for place, name in enumerate(names):
        console.print(_make_table([name], [Row(row.label, row.cells[place : place + 1]) for row in rows]))
        console.print()


def _make_table(names: Sequence[str], rows: Sequence[Row]) -> Any:
    from rich.table import Column, Table

    headers = [Column(to_plain_text(name, "bold"), ratio=1, overflow="fold") for name in names or [""]]
    first = Column("", width=LABEL, justify="right", style="dim")
    table = Table(first, *headers, box=None, padding=(0, 2, 0, 0), expand=True, show_header=bool(names))
    for row in rows:
        if any(cell.plain for cell in row.cells):
            table.add_row(row.label, *row.cells)
    return table


def _describe_question(view: TurnView) -> Iterator[Row]:
    """What is the same for all runs."""
    yield Row("before", (to_plain_text(to_one_line(view.last_reply), "dim"),))
    yield Row("asked", (to_plain_text(view.turn.utterance, "bold"),))
    yield Row("human", (_underline_new(view.human_rewrite),))
    yield Row("canonical", (to_plain_text(view.reply, "dim"),))


def _compare(view: TurnView) -> Iterator[Row]:
    runs = view.runs
    yield Row("searched for", tuple(_underline_new(run.rewrite) for run in runs))
    for row in view.statements:
        yield Row("knowing", tuple(_describe_statement(row.statement.text, mark) for mark in row.marks))
    yield Row("answer", tuple(map(_describe_answer, runs)))
    for rank, cells in enumerate(view.ranking, start=1):
        yield Row(str(rank), tuple(map(_describe_passage, cells)))
    for passage in view.relevant:
        yield Row("relevant", tuple(_describe_rank(passage.id, rank, len(view.ranking)) for rank in passage.ranks))
    for nugget in view.nuggets:
        found = (f"{ASSIGNMENTS[assignment]}  {nugget.text}" for assignment in nugget.assignments)
        yield Row("nugget", tuple(map(to_plain_text, found)))
    for step in view.steps:
        yield Row(step.step, tuple(to_plain_text(_describe_cost(cost), "dim") for cost in step.costs))
    yield Row("whole turn", tuple(to_plain_text(_describe_seconds(run), "dim") for run in runs))


def _underline_new(pieces: Sequence[Words]) -> "Text":
    text = to_plain_text("")
    for piece in pieces:
        text.append_text(to_plain_text(piece.text, "underline" if piece.is_new else ""))
    return text


def _describe_statement(statement: str, mark: Mark) -> "Text":
    said, style = MARKS[mark]
    return to_plain_text(f"{said}  {statement}" if said else "", style)


def _describe_answer(run: RunTurnView) -> "Text":
    if run.is_missing:
        return to_plain_text("the run lacks this turn", "dim")
    text = to_plain_text("" if run.sentences else "(none)", "dim")
    for sentence in run.sentences:
        text.append_text(to_plain_text(defuse_citations(sentence.text), "not dim"))
        numbers = ",".join(str(run.citations[id]) for id in sentence.passage_ids)
        text.append(f" [{numbers}] " if numbers else " ", "not dim green")
    return text


def _describe_passage(cell: RankedPassage | None) -> "Text":
    if cell is None:
        return to_plain_text("")
    cited = f"  [{cell.citation}]" if cell.citation else ""
    mark = "✓ " if cell.is_relevant else "  "
    return to_plain_text(f"{mark}{to_one_line(cell.id)}{cited}", "green" if cell.is_relevant else "")


def _describe_rank(id: str, rank: int | None, shown: int) -> "Text":
    """Of a relevant passage that is not among those shown; nothing of one that is."""
    if rank is not None and rank <= shown:
        return to_plain_text("")
    found = f"rank {rank}" if rank else "not found"
    return to_plain_text(f"{to_one_line(id)}: {found}", "red")


def _describe_cost(cost: StepCost | None) -> str:
    if cost is None:
        return ""
    tokens = f"{cost.tokens_read} + {cost.tokens_written} tokens, " if cost.tokens_read or cost.tokens_written else ""
    return f"{tokens}{cost.seconds:.2f} s"


def _describe_seconds(run: RunTurnView) -> str:
    return "" if run.seconds is None else f"{run.seconds:.2f} s"
