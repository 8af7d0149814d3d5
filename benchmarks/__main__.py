"""The benchmarks that compare the default with what it is without each part: `python -m benchmarks ikat --help`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.terminal.errors import ErrorReportingGroup
from agent.terminal.progress import stage_progress, turn_progress
from agent.terminal.settings import configure_logging
from benchmarks.bed import BenchRequest, Progress
from benchmarks.figures import Outcome, finish, finish_bed, format_results
from benchmarks.ikat import run_ikat
from benchmarks.mtrag import run_mtrag
from benchmarks.own import run_own
from cli import Jobs, ModelOption, Overwrite

app = typer.Typer(cls=ErrorReportingGroup, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
PROGRESS = Progress(turn_progress, stage_progress)
Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder of the files; what is missing is named.")]
Folder = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Runs, traces, tables.", show_default="bench-NAME")
]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="A system; can be repeated.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="So many conversations, evenly spaced.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the folder's traces end.")]
Half = Annotated[
    Literal["open", "kept", "all"], typer.Option(help="Which conversations; the kept ones are for the end.")
]


@app.callback()
def start() -> None:
    configure_logging(quiet=False, verbose=0)


@app.command()
def ikat(
    data: Data,
    output: Folder = None,
    model: ModelOption = "smollm2",
    only: Only = None,
    limit: Limit = None,
    jobs: Jobs = 1,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """iKAT 2023 over the passages whose text is public: search, statements, answers."""
    folder = output or Path("bench-ikat")
    request = BenchRequest(data, folder, model, tuple(only or ()), limit, jobs, resume, overwrite)
    show(finish_bed("ikat", run_ikat(request, PROGRESS), request))


@app.command()
def mtrag(
    data: Data,
    output: Folder = None,
    model: ModelOption = "smollm2",
    only: Only = None,
    limit: Limit = None,
    jobs: Jobs = 1,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """MTRAG-UN: search, answers, what has no answer told as such, what is underspecified asked back."""
    folder = output or Path("bench-mtrag")
    request = BenchRequest(data, folder, model, tuple(only or ()), limit, jobs, resume, overwrite)
    show(finish_bed("mtrag", run_mtrag(request, PROGRESS), request))


@app.command()
def own(
    data: Data = Path(),
    output: Folder = None,
    model: ModelOption = "smollm2",
    half: Half = "open",
    only: Only = None,
    limit: Limit = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Questions over a person's own documents, asked as in a chat."""
    folder = output or Path("bench-own")
    request = BenchRequest(data, folder, model, tuple(only or ()), limit, 1, resume, overwrite)
    show(finish("own", run_own(request, PROGRESS, half), request))


def show(outcome: Outcome) -> None:
    """The tables, and where their files are."""
    typer.echo(format_results(outcome.results), nl=False)
    for file in outcome.files:
        typer.echo(str(file), err=True)


if __name__ == "__main__":
    app()
