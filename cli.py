"""The command line: parse, make one call, print. Nothing else."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from agent import console

app = typer.Typer(
    name="convagent",
    cls=console.KindGroup,
    help="A local agent for conversational search: it rewrites the turn, chooses what it knows about the person, "
    "searches passages, and answers from what it read. Nothing leaves the machine.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
index_app = typer.Typer(help="Build and inspect passage indexes.", no_args_is_help=True)
app.add_typer(index_app, name="index")

IndexOption = Annotated[
    Path, typer.Option("--index", "-i", help="Index directory.", envvar="CONVAGENT_INDEX", metavar="DIR")
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        envvar="CONVAGENT_MODEL",
        help="smollm2, a path to a .gguf file, none, scripted:FILE.",
    ),
]
Version = Annotated[
    bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=console.show_version)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Topics = Annotated[Path, typer.Argument(help="A topics file of iKAT 2023, 2024 or 2025.")]
Edition = Literal["ikat-2023", "ikat-2024", "ikat-2025"]


@app.callback()
def settings(
    context: typer.Context,
    version: Version = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors on stderr.")] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="More on stderr; -vv with tracebacks.")
    ] = 0,
) -> None:
    """Settings: a flag, then CONVAGENT_* in the environment, then convagent.toml in the current directory."""
    context.default_map = console.configure(quiet=quiet, verbose=verbose)


@app.command()
def answer(
    topics: Topics,
    index: IndexOption = Path("index"),
    model: ModelOption = "smollm2",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The run file; - for stdout. Default: TOPICS.run.json."),
    ] = None,
    edition: Annotated[
        Edition | None, typer.Option("--format", help="Of the run. Default: that of the topics.")
    ] = None,
    run_name: Annotated[str, typer.Option(help="The run's name.")] = "convagent",
    trace: Annotated[Path | None, typer.Option(help="The trace file. Default: RUN.trace.jsonl")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Passages a turn.")] = 1000,
    shown: Annotated[int, typer.Option(min=1, max=20, help="Passages that the answer is built from.")] = 5,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the trace ends.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Answer every turn of a topics file and write a valid run.

    [bold]convagent answer topics.json --index index[/] writes topics.run.json and, turn by turn, its trace.
    [bold]convagent answer topics.json -i index --resume[/] goes on after an interruption.
    [bold]convagent answer topics.json -i index -m none -o -[/] uses no model and prints the run.
    """
    from agent import answering

    outputs = answering.Outputs.choose(topics, output, trace, resume=resume, overwrite=overwrite)
    request = answering.Request(topics, index, model, edition, run_name, k=k, shown=shown)
    console.show_run(answering.answer_file(request, outputs, console.turn_progress))


@index_app.command("build")
def index_build(
    passages: Annotated[list[Path], typer.Argument(help="Files or directories: .jsonl, .tsv, plain or .gz .bz2 .zst")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The index directory.")] = Path("index"),
    on_error: Annotated[Literal["stop", "skip"], typer.Option(help="What to do with a bad passage.")] = "stop",
    overwrite: Overwrite = False,
) -> None:
    """Build an index from passage files.

    [bold]convagent index build passages.jsonl.gz more/ -o index[/]
    """
    from indexes.corpus import find_corpus
    from indexes.passages import build_index

    corpus = find_corpus(passages)
    with console.byte_progress(corpus) as progress:
        built = build_index(corpus, output, skip_problems=on_error == "skip", overwrite=overwrite, progress=progress)
    console.show_built(built, corpus, output)


@index_app.command("info")
def index_info(
    index: Annotated[Path, typer.Argument(metavar="DIR")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """What an index holds and how it was made."""
    from indexes.passages import read_info

    console.show_info(read_info(index), index, as_json=as_json)


@app.command()
def search(
    index: Annotated[Path, typer.Argument(metavar="DIR", help="Index directory.")],
    query: Annotated[str, typer.Argument(help="What to look for.")],
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many passages.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Search an index.

    [bold]convagent search index "gluten free bread" -k 5[/]
    """
    from indexes.passages import PassageIndex

    opened = PassageIndex(index)
    hits = opened.search([(query, 1.0)], k)
    console.show_hits(hits, opened.read([hit.id for hit in hits]), as_json=as_json)


@app.command()
def validate(
    run: Annotated[Path, typer.Argument(help="A run file.")],
    topics: Annotated[Path, typer.Option("--topics", "-t", help="The topics it answers.")],
    edition: Annotated[
        Edition | None, typer.Option("--format", help="Of the run. Default: that of the topics.")
    ] = None,
) -> None:
    """Check a run file against its edition's schema and rules; lists every problem.

    [bold]convagent validate topics.run.json --topics topics.json[/]
    """
    from agent.files import read_bytes
    from agent.tracks import read_topics, run_problems

    asked = read_topics(topics)
    console.show_problems(run, run_problems(read_bytes(run), asked, edition), len(asked.turn_ids()))


@app.command()
def show(
    trace: Annotated[Path, typer.Argument(help="A trace file.")],
    topic: Annotated[str | None, typer.Option(help="Which conversation. Default: the first.")] = None,
) -> None:
    """Show one answered conversation: what was asked, the rewrite, the statements used, the answer and its sources."""
    from agent.trace import read_trace

    console.show_conversation(read_trace(trace), topic, trace)


@app.command()
def prompts(step: Annotated[str | None, typer.Argument(help="A step. Default: list them.")] = None) -> None:
    """List the prompts, or show one; CONVAGENT_PROMPTS names a directory with files of your own."""
    import prompts as texts

    for name in [step] if step else texts.steps():
        path = texts.file_of(name)
        typer.echo(path.read_text(encoding="utf-8").rstrip() if step else f"{name:12} {path}")


if __name__ == "__main__":
    app()
