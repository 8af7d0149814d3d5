"""What `convagent eval conversation` prints: a row a measure, a column a run, means with their intervals."""

from typing import TYPE_CHECKING

import typer

from agent.terminal.output import open_stdout, to_plain_text
from indexes.text.control_characters import strip_control_characters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent.evaluation.conversation import ConversationMeasures, Measured


def show_conversations(runs: "Sequence[ConversationMeasures]", *, per_turn: bool, as_json: bool) -> None:
    """Search by depth first, then the other measures; 95 % intervals by bootstrap over conversations."""
    from rich.table import Column, Table

    from agent.evaluation.conversation import SEARCH

    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode(runs).decode())
        return
    if per_turn:
        for run in runs:
            _print_values(run)
    table = Table("", *(Column(to_plain_text(run.name)) for run in runs), "of", box=None, pad_edge=False)
    for depth in dict.fromkeys(depth for run in runs for depth in run.depths):
        table.add_row(f"{SEARCH}, turn {depth}", *_format_row([run.depths for run in runs], depth))
    for measure in dict.fromkeys(measure for run in runs for measure in run.means):
        table.add_row(measure, *_format_row([run.means for run in runs], measure))
    open_stdout().print(table)


def _format_row(found: "Sequence[Mapping[str, Measured]]", name: str) -> list[str]:
    """A cell for each run, then over how many turns or conversations it is."""
    counts = dict.fromkeys(str(means[name].count) for means in found if name in means)
    return [*(_format_measured(means.get(name)) for means in found), " / ".join(counts)]


def _format_measured(measured: "Measured | None") -> str:
    if measured is None:
        return "-"
    interval = measured.interval
    return f"{interval.mean:.3f} ({interval.low:.3f}, {interval.high:.3f})"


def _print_values(run: "ConversationMeasures") -> None:
    for measure, values in run.values.items():
        for id, value in values.items():
            typer.echo(strip_control_characters(f"{run.name}\t{id.removesuffix('_')}\t{measure}\t{value:.4f}"))
