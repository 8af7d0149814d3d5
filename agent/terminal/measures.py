"""What `convagent eval` prints: a row a measure, a column a run."""

from typing import TYPE_CHECKING

import typer

from agent.terminal.output import print_json, print_table, to_plain_text
from agent.terminal.settings import log
from indexes.text.control_characters import strip_control_characters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.evaluation.scores import Scores


def show_measures(runs: "Sequence[Scores]", measures: "Sequence[str]", *, per_turn: bool, as_json: bool) -> None:
    """A row for each measure that a run has; two runs stand side by side, with the p-value of their difference."""
    from agent.evaluation.scores import p_value

    measures = [measure for measure in measures if any(run.by_turn(measure) for run in runs)]
    if as_json:
        import msgspec

        means = [{measure: run.mean(measure) for measure in measures if run.by_turn(measure)} for run in runs]
        print_json([msgspec.to_builtins(run) | {"mean": mean} for run, mean in zip(runs, means, strict=True)])
        return
    from rich.table import Column

    for turn_id in runs[0].turns if per_turn else ():
        values = (run.turns[turn_id].get(measure) for run in runs for measure in measures)
        shown = "  ".join("   -  " if value is None else f"{value:.4f}" for value in values)
        typer.echo(strip_control_characters(f"{turn_id}\t{shown}"))
    pair = len(runs) == 2
    rows = []
    for measure in measures:
        turns = " / ".join(dict.fromkeys(str(len(run.by_turn(measure))) for run in runs))
        means_shown = [f"{run.mean(measure):.3f}" if run.by_turn(measure) else "-" for run in runs]
        p = ["-" if "-" in means_shown else f"{p_value(runs[0], runs[1], measure):.3f}"] if pair else []
        rows.append([measure, *means_shown, turns, *p])
    names = [Column(to_plain_text(run.name)) for run in runs]  # no markup is read in a name
    print_table(["", *names, "turns", *(["p"] if pair else [])], rows)
    missing = "".join(f"; {run.name} lacks {run.missing}" for run in runs if run.missing)
    log.info("%d turns judged%s", len(runs[0].turns), missing)
