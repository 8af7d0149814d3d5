"""The benchmarks that compare the default with what it is without each part: `python -m benchmarks ikat --help`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.terminal.progress import stage_progress, turn_progress
from agent.terminal.settings import ErrorReportingGroup, configure_logging
from benchmarks.bed import BenchRequest, Progress
from benchmarks.figures import BenchedBed, Outcome, finish, finish_bed, format_results
from benchmarks.ikat import run_ikat
from benchmarks.mtrag import run_mtrag
from benchmarks.own import run_own
from cli import MODEL, OVERWRITE

app = typer.Typer(cls=ErrorReportingGroup, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
PROGRESS = Progress(turn_progress, stage_progress)
Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder of the files; what is missing is named.")]
Folder = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Runs, traces, tables.", show_default="bench-NAME")
]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="A system; can be repeated.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="So many conversations, evenly spaced.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the folder's traces end.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Topics at a time, each with its own model.")]
Half = Annotated[
    Literal["open", "kept", "all"], typer.Option(help="Which conversations; the kept ones are for the end.")
]


@app.callback()
def start() -> None:
    configure_logging(quiet=False, verbose=0)


def add_command(name: str, run: Callable[[BenchRequest, Progress], BenchedBed], about: str) -> None:
    """A command that measures the systems over the topics of a collection."""

    @app.command(name, help=about)
    def measure(
        data: Data,
        output: Folder = None,
        model: str = MODEL,
        only: Only = None,
        limit: Limit = None,
        jobs: Jobs = 1,
        resume: Resume = False,
        overwrite: bool = OVERWRITE,
    ) -> None:
        folder = output or Path(f"bench-{name}")
        request = BenchRequest(data, folder, model, tuple(only or ()), limit, jobs, resume, overwrite)
        show(finish_bed(name, run(request, PROGRESS), request))


add_command("ikat", run_ikat, "iKAT 2023 over the passages whose text is public: search, statements, answers.")
add_command("mtrag", run_mtrag, "MTRAG-UN: search, answers and abstentions.")


@app.command()
def own(
    data: Data = Path(),
    output: Folder = None,
    model: str = MODEL,
    half: Half = "open",
    only: Only = None,
    limit: Limit = None,
    resume: Resume = False,
    overwrite: bool = OVERWRITE,
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
