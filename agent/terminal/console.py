"""What the terminal shows. Data goes to stdout; progress, notes and errors to stderr."""

import logging
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from indexes.text.control_characters import strip_control_characters
from schemas.errors import ConvagentError, InvalidInputError, MissingError

if TYPE_CHECKING:
    from rich.text import Text

    from agent.chat.document_index import ReadingReport
    from agent.chat.store import ChatSummary
    from agent.evaluation.scores import Scores
    from agent.models.catalogue import ModelEntry
    from agent.runs.answer_topics import RunReport
    from agent.runs.run import OnTurn
    from agent.runs.trace import Trace
    from agent.runs.validation import Verdict
    from agent.tasks.touche.run import ToucheReport, ToucheTask
    from agent.terminal.doctor import Cache, Facts, Model
    from indexes.corpora.corpus import Corpus
    from indexes.index_builder import BuildReport
    from indexes.passage_index import PassageIndex
    from schemas.records import Hit, Passage, Problem, TurnResult

SETTINGS_FILE = "convagent.toml"
INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
LISTED = 10  # files of a folder that are named, of each kind
log = logging.getLogger("convagent")
_verbosity = {"quiet": False, "verbose": 0}


class ErrorReportingGroup(TyperGroup):
    """Turns our errors into a message and an exit code, in this one place for all commands."""

    def invoke(self, ctx: Any) -> Any:
        signal.signal(signal.SIGTERM, _raise_terminated)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # not at exit, where it is too late to say that it failed
        except ConvagentError as error:
            if _verbosity["verbose"] > 1:
                raise
            typer.echo(strip_control_characters(f"convagent: {error}"), err=True)
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            _report_end("interrupted", ctx)
            raise typer.Exit(INTERRUPTED) from error
        except _TerminatedError as error:
            _report_end("terminated", ctx)
            raise typer.Exit(TERMINATED) from error
        except BrokenPipeError as error:  # whoever read has read enough
            _discard_stdout()
            raise typer.Exit(0) from error
        except OSError as error:
            if _verbosity["verbose"] > 1:
                raise
            if error.filename is None:
                _discard_stdout()
            typer.echo(f"convagent: {error.filename or 'standard output'}: {error.strerror or error}", err=True)
            raise typer.Exit(ConvagentError.exit_code) from error
        return result


class _TerminatedError(SystemExit):
    """SIGTERM: everything is tidied up as after Ctrl-C, but nobody takes it for a wish to go on with the next thing."""


def _raise_terminated(_signal: int, _frame: object) -> None:
    raise _TerminatedError(TERMINATED)


def _report_end(how: str, ctx: Any) -> None:
    """That it was, and how to go on where something is to be gone on with."""
    kept = ": what was answered is kept, and the same command with --resume goes on"
    typer.echo(f"\nconvagent: {how}{kept if ctx.invoked_subcommand == 'answer' else ''}", err=True)


def _discard_stdout() -> None:
    """What is still to be written goes nowhere, without a complaint when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class _PlainFormatter(logging.Formatter):
    """Messages quote files."""

    def format(self, record: logging.LogRecord) -> str:
        return strip_control_characters(super().format(record))


def configure(*, quiet: bool, verbose: int) -> dict[str, Any]:
    """Set up logging; the defaults that `convagent.toml` in the current directory gives, by command."""
    _verbosity.update(quiet=quiet, verbose=verbose)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter("%(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)
    if quiet:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when huggingface_hub is imported
    return settings_file()


def settings_file() -> dict[str, Any]:
    """What `convagent.toml` in the current directory says; nothing where there is none."""
    path = Path(SETTINGS_FILE)
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"is not TOML ({error})", where=SETTINGS_FILE) from error


def show_version(wanted: bool) -> None:
    from importlib.metadata import version

    if wanted:
        typer.echo(f"convagent {version('convagent')}")
        raise typer.Exit


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True, quiet=bool(_verbosity["quiet"]), highlight=False)


def _stdout() -> Any:
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to `ErrorReportingGroup`: rich would exit with a code of its own."""
            raise BrokenPipeError

    return Piped(highlight=False)


@contextmanager
def turn_progress(total: int, done: int) -> "Iterator[OnTurn]":
    """A bar with turns done, seconds a turn and the time left; nothing where stderr is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("turns"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"))
    console = _stderr()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("turns", total=total, completed=done, pace="")
        seconds: list[float] = []

        def on_turn(answered: "TurnResult", took: float) -> None:
            seconds.append(took)
            log.debug("%s  %.1f s  %s", answered.turn_id, took, answered.query.standalone)
            bar.update(task, advance=1, pace=f"{sum(seconds) / len(seconds):.1f} s a turn")

        yield on_turn


@contextmanager
def byte_progress(corpus: "Corpus") -> Iterator[Callable[[], None]]:
    """A bar over the bytes of a corpus, with passages a second; nothing where stderr is no terminal."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("indexing"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[pace]}"))
    console = _stderr()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("indexing", total=corpus.bytes_total, pace="")
        started = time.perf_counter()

        def on_block() -> None:
            pace = corpus.passages_read / max(time.perf_counter() - started, 1e-3)
            bar.update(task, completed=corpus.bytes_read, pace=f"{pace:,.0f} passages/s")

        yield on_block


@contextmanager
def progress(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over things done, named by what is done with them; nothing where stderr is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = _stderr()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.update(task, completed=done)


def passage_progress(total: int) -> AbstractContextManager[Callable[[int], None]]:
    """A bar over passages embedded."""
    return progress("embedding", total)


def show_embedding_done(passages: int, path: Path) -> None:
    if passages:
        log.info("%s: %d passages embedded", path, passages)


def show_documents(report: "ReadingReport") -> None:
    """What was read of a person's folder, what was not, and why; of each the first `LISTED`."""
    gone = f", {len(report.gone)} gone" if report.gone else ""
    log.info("%d documents read, %d as they were%s", len(report.read), len(report.unchanged), gone)
    for told, problems in (("left out", report.skipped), ("note", report.notes)):
        for problem in problems[:LISTED]:
            log.warning("  %s: %s", told, problem)
        if len(problems) > LISTED:
            log.warning("  %s: %d more", told, len(problems) - LISTED)


def show_run(report: "RunReport") -> None:
    """What a finished run is, and what to do with it."""
    resumed = f" ({report.resumed} of them from the trace)" if report.resumed else ""
    log.info("%d turns answered%s", report.turns, resumed)
    if report.without_model:
        turn_id, why = next(iter(report.without_model.items()))
        what = f"{len(report.without_model)} of them without the model, which failed (turn {turn_id}: {why})"
        log.warning("%s; `--resume` asks it again", what)
    verdict = f"{len(report.problems)} problems" if report.problems else "valid"
    log.info("run    %s  (%s, %s)\ntrace  %s", report.run, report.edition, verdict, report.trace)
    if report.problems:
        listed = "\n".join(f"  {problem}" for problem in report.problems)
        raise InvalidInputError(f"the run breaks rules of its edition:\n{listed}", where=str(report.run))


def show_index_built(built: "BuildReport", corpus: "Corpus", path: Path) -> None:
    for problem in built.problems:
        log.warning("%s", problem)
    for file in corpus.skipped_files:
        log.warning("%s: not a kind of passage file, left out", file)
    info = built.info
    skipped = f", {info.skipped} skipped" if info.skipped else ""
    pace = f" ({info.passages / info.seconds:,.0f} passages/s)" if info.seconds >= 1 else ""
    log.info("%s: %d passages%s in %.1f s%s", path, info.passages, skipped, info.seconds, pace)


def show_touche_run(ranked: "ToucheReport", task: "ToucheTask", output: Path) -> None:
    """What a finished run of Touché is, and which topics nothing was found for."""
    from agent.tasks.touche.run import RUN_FILE

    show_index_built(ranked.built, ranked.arguments, task.directory)
    for number, hits in ranked.hits.items():
        if not hits:
            log.warning("topic %s: nothing found, it is not in the run", number)
    log.info("%s: %d topics, %d lines", output / RUN_FILE, len(ranked.hits), sum(map(len, ranked.hits.values())))


def show_info(index: "PassageIndex", path: Path, *, as_json: bool) -> None:
    info, embedded = index.info, index.vector_info
    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode(msgspec.to_builtins(info) | {"vectors": embedded}).decode())
        return
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    rows = {
        "index": str(path),
        "passages": f"{info.passages}" + (f" ({info.skipped} skipped)" if info.skipped else ""),
        "size": f"{size / 1e6:.1f} MB",
        "analyzer": info.analyzer,
        "sources": "\n".join(f"{'':10}{source}" for source in info.sources).strip(),
        "vectors": f"{embedded.model}, {embedded.size} numbers each" if embedded else "none",
        "made by": f"{info.made_by} in {info.seconds} s",
    }
    for name, value in rows.items():
        typer.echo(f"{name:10}{value}")


def show_fetched_model(path: Path, new: bool) -> None:
    log.info("fetched, %.0f MB" if new else "was there already, %.0f MB", path.stat().st_size / 1e6)
    typer.echo(path)


def show_models(models: "Sequence[ModelEntry]", *, as_json: bool) -> None:
    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode(models).decode())
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("name", "for", "size", "", box=None, pad_edge=False)
    for model in models:
        size = f"{model.bytes / 1e6:.0f} MB" if model.bytes else "-"
        table.add_row(model.name, model.kind, size, escape(model.remedy and f"not installed: {model.remedy}"))
    _stdout().print(table)


def show_doctor(facts: "Facts", *, as_json: bool) -> None:
    """All of it, a section a subject; raises where something stands in the way, so that the exit code says so."""
    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode({"usable": facts.usable} | msgspec.to_builtins(facts)).decode())
    else:
        _show_facts(facts)
    stopping = [trouble.what for trouble in facts.troubles if trouble.stops]
    if stopping:
        raise MissingError("it cannot be used yet", remedy="See the problems named above.")


def _show_facts(facts: "Facts") -> None:
    machine = facts.machine
    memory = f"{machine.memory_free / 1e9:.1f} GB free of {machine.memory_total / 1e9:.1f} GB"
    rows = {
        "python": machine.python,
        "system": machine.system,
        "cores": f"{machine.physical_cores} physical, {machine.logical_cores} logical that may be used",
        "memory": memory,
        "compiled for": ", ".join(machine.features) or "?",
    }
    _section("Machine", [(name, value, "") for name, value in rows.items()])
    _section("Language model", _model_rows(facts.language))
    _section("Embedding model", _model_rows(facts.embedding))
    _section("Cache", _cache_rows(facts.cache))
    _section("Libraries", [(name, version or "not installed", "") for name, version in facts.libraries.items()])
    settings = [(setting.name, setting.value, setting.origin) for setting in facts.settings]
    _section("Settings", settings or [("", "none: all as it comes", "")])
    problems = [("stops" if trouble.stops else "note", trouble.what, trouble.remedy) for trouble in facts.troubles]
    _section("Problems", problems or [("", "none", "")])


def _section(title: str, rows: "Sequence[tuple[str, str, str]]") -> None:
    """Names and values, and dim behind them what is said about them."""
    from rich.table import Table

    table = Table(title, "", box=None, pad_edge=False, header_style="bold")
    table.columns[0].min_width = 18
    table.columns[1].overflow = "fold"  # paths are there to be copied
    for name, value, about in rows:
        table.add_row(
            plain_text_markup(f"  {name}"), plain_text_markup(value).append_text(plain_text_markup(f"  {about}", "dim"))
        )
    console = _stdout()
    console.print(table)
    console.print()


def _model_rows(model: "Model") -> list[tuple[str, str, str]]:
    rows = [("name", model.name, "")]
    if model.source:
        rows.append(("source", f"{model.quantisation}  {_megabytes(model.bytes)}".strip(), model.source))
    if model.remedy:
        rows.append(("file", "not there", model.remedy))
    if copy := model.copy:
        size = f"  {_megabytes(copy.bytes)}" if copy.bytes else ""
        rows.append((copy.quantisation, f"{copy.state}{size}", copy.path))
    for choice in model.choices:
        value = {True: "on", False: "off"}[choice.value] if isinstance(choice.value, bool) else str(choice.value)
        rows.append((choice.name, value, choice.why))
    return rows


def _cache_rows(cache: "Cache") -> list[tuple[str, str, str]]:
    """The largest files by name, and how many more there are."""
    rows = [("directory", cache.directory, "can be written" if cache.writable else "cannot be written")]
    largest = sorted(cache.files, key=lambda file: -file.bytes)
    rows += [("", file.name, _megabytes(file.bytes)) for file in largest[:LISTED]]
    if more := largest[LISTED:]:
        rows.append(("", f"{len(more)} more", _megabytes(sum(file.bytes for file in more))))
    return rows


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def plain_text_markup(text: str, style: str = "") -> "Text":
    """Text from outside as it is: nothing in it is markup, and no control character of it reaches the terminal."""
    from rich.text import Text

    return Text(strip_control_characters(text), style)


def show_hits(hits: "Sequence[Hit]", passages: "Sequence[Passage]", *, as_json: bool) -> None:
    if as_json:
        import msgspec

        for rank, (hit, passage) in enumerate(zip(hits, passages, strict=True), start=1):
            row = {
                "rank": rank,
                "id": hit.id,
                "score": hit.score,
                "title": passage.title,
                "text": passage.text,
            }
            typer.echo(msgspec.json.encode(row).decode())
        return
    if not hits:
        log.info("nothing found: no passage holds any of these words")
        return
    from rich.table import Table

    table = Table("rank", "score", "id", "passage", box=None, pad_edge=False)
    for rank, (hit, passage) in enumerate(zip(hits, passages, strict=True), start=1):
        text = " ".join(f"{passage.title} {passage.text}".split())
        table.add_row(
            str(rank),
            f"{hit.score:.4f}",
            plain_text_markup(hit.id),
            plain_text_markup(f"{text[:240]}..." if len(text) > 240 else text),
        )
    _stdout().print(table)


def show_chats(chats: "Sequence[ChatSummary]") -> None:
    """A row a conversation, the latest first."""
    from rich.table import Table

    table = Table("", "begun", "turns", "asked", "of", box=None, pad_edge=False)
    for chat in chats:
        begun, source = chat.started[:16].replace("T", " "), plain_text_markup(Path(chat.source).name)
        table.add_row(str(chat.id), begun, str(chat.turns), plain_text_markup(chat.title), source)
    _stdout().print(table if chats else "There are no conversations.")


def show_measures(runs: "Sequence[Scores]", measures: "Sequence[str]", *, per_turn: bool, as_json: bool) -> None:
    """A row a measure that a run has; two runs side by side with the p-value of their difference."""
    from rich.table import Column, Table

    from agent.evaluation.scores import p_value

    measures = [measure for measure in measures if any(run.by_turn(measure) for run in runs)]
    if as_json:
        import msgspec

        means = [{measure: run.mean(measure) for measure in measures if run.by_turn(measure)} for run in runs]
        rows = [msgspec.to_builtins(run) | {"mean": mean} for run, mean in zip(runs, means, strict=True)]
        typer.echo(msgspec.json.encode(rows).decode())
        return
    if per_turn:
        for turn_id in runs[0].turns:
            values = "  ".join(_value(run.turns[turn_id].get(measure)) for run in runs for measure in measures)
            typer.echo(strip_control_characters(f"{turn_id}\t{values}"))
    pair = len(runs) == 2
    names = [Column(plain_text_markup(run.name)) for run in runs]
    table = Table("", *names, "turns", *(["p"] if pair else []), box=None, pad_edge=False)
    for measure in measures:
        turns = " / ".join(dict.fromkeys(str(len(run.by_turn(measure))) for run in runs))
        shown = [f"{run.mean(measure):.3f}" if run.by_turn(measure) else "-" for run in runs]
        p = ["-" if "-" in shown else f"{p_value(runs[0], runs[1], measure):.3f}"] if pair else []
        table.add_row(measure, *shown, turns, *p)
    _stdout().print(table)
    missing = "".join(f"; {run.name} lacks {run.missing}" for run in runs if run.missing)
    log.info("%d turns judged%s", len(runs[0].turns), missing)


def _value(value: float | None) -> str:
    return "   -  " if value is None else f"{value:.4f}"


def show_problems(verdict: "Verdict", *, as_json: bool) -> None:
    """All of them; raises so that the exit code says so."""
    import msgspec

    if as_json:
        found = {"valid": not verdict.problems, "run": str(verdict.run), "turns": verdict.turns}
        typer.echo(msgspec.json.encode(found | {"problems": verdict.problems}).decode())
    elif not verdict.problems:
        typer.echo(f"{verdict.run}: valid ({verdict.turns} turns)")
    else:
        for problem in verdict.problems:
            typer.echo(strip_control_characters(str(problem)))
    if verdict.problems:
        raise InvalidInputError(f"{len(verdict.problems)} problems", where=str(verdict.run))


def show_changes(changes: "Sequence[Problem]", path: Path) -> None:
    for change in changes:
        log.info("%s", change)
    log.info("%s: written, %d changes", path, len(changes))


def show_lines_written(topics: int, odd: "Sequence[Problem]", path: Path) -> None:
    """What was odd about a topics file, and what was written for it."""
    for problem in odd:
        log.warning("%s", problem)
    log.info("%s: %d topics", path, topics)


def report_server_start(*, open_browser: bool) -> "Callable[[str], None]":
    """Tells the address once it is listened on, and who else can reach it."""

    def ready(address: str) -> None:
        from urllib.parse import urlsplit

        from agent.serve.server import is_loopback

        log.info("convagent answers at %s (Ctrl-C ends it)", address)
        if not is_loopback(urlsplit(address).hostname or ""):
            log.warning("whoever reaches this address can ask, and read and delete what is kept: there is no password")
        if open_browser:
            typer.launch(address)

    return ready


def show_conversation(trace: "Trace", topic: str | None, path: Path) -> None:
    """One conversation as a person would want to read it."""
    topics = list(dict.fromkeys(_topic_of(turn_id) for turn_id in trace.places))
    if not topics:
        raise InvalidInputError("holds no answered turn", where=str(path))
    wanted = topic if topic is not None else topics[0]
    if wanted not in topics:
        raise InvalidInputError(f"holds no topic {wanted!r} (there are: {', '.join(topics)})", where=str(path))
    console = _stdout()
    settings = trace.settings
    about = f"{settings.model}, {settings.edition}, {settings.mode}"
    console.print(plain_text_markup(f"Conversation {wanted}", "bold"), plain_text_markup(f"({about})\n", "dim"))
    for line in trace.lines(turn_id for turn_id in trace.places if _topic_of(turn_id) == wanted):
        _show_turn(console, line.answered)


def _topic_of(turn_id: str) -> str:
    return turn_id.rpartition("_")[0]


def _show_turn(console: Any, turn: "TurnResult") -> None:
    from rich.markup import escape
    from rich.table import Table

    def row(label: str, text: str, style: str = "") -> None:
        text = strip_control_characters(text)
        line = Table.grid(padding=(0, 2))
        line.add_column(width=12, justify="right", style="dim")
        line.add_column(style=style)
        line.add_row(escape(label), text)
        console.print(line)

    console.rule(plain_text_markup(turn.turn_id, "dim"), align="left", style="dim")
    row("asked", escape(turn.query.utterance), "bold")
    row("searched for", escape(turn.query.standalone))
    for chosen in turn.selected_statements:
        row("knowing", escape(f"{chosen.statement.text}  ({chosen.score:+.2f})"), "cyan")
    if not turn.selected_statements:
        row("knowing", "nothing about the person that matters here", "dim")
    sources = {id: str(n) for n, id in enumerate(turn.response.used, start=1)}
    marked = " ".join(
        f"{escape(s.text)} [green]\\[{','.join(sources[id] for id in s.passage_ids)}][/]"
        if s.passage_ids
        else escape(s.text)
        for s in turn.response.sentences
    )
    row("answer", marked or f"[dim]({'none was wanted' if turn.hits else 'nothing was found'})[/]")
    ranks = {hit.id: rank for rank, hit in enumerate(turn.hits, start=1)}
    for id, number in sources.items():
        rank = f"rank {ranks[id]} of {len(turn.hits)}" if id in ranks else "not in the ranking"
        row(f"[{number}]", escape(f"{id}  ({rank})"), "green")
    console.print()
