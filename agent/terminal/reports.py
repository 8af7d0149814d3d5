"""What commands print of their results: runs, indexes, models, measures, problems, kept conversations."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agent.terminal.index_reports import show_index_built
from agent.terminal.output import open_stdout, to_plain_text
from agent.terminal.settings import is_quiet, log
from indexes.text.control_characters import strip_control_characters
from schemas.errors import InvalidInputError, format_count, list_with_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.evaluation.judging import JudgedRuns
    from agent.evaluation.scores import Scores
    from agent.models.catalogue import ModelEntry
    from agent.runs.answer_topics import RunReport
    from agent.runs.server_usage import ServerUsage
    from agent.runs.validation import Verdict
    from agent.serve.listening import ServerStart
    from agent.tasks.touche.run import ToucheReport, ToucheTask
    from indexes.documents.document_index import ReadingReport
    from schemas.records import ChatSummary, Hit, Passage, Problem

OPENING_SECONDS = 60.0  # that a browser has to open a page
LISTED = 10  # files of a folder that are named, of each kind


def show_version(wanted: bool) -> None:
    """Print the version and end, where `--version` was given."""
    from importlib.metadata import version

    if wanted:
        typer.echo(f"convagent {version('convagent')}")
        raise typer.Exit


def show_documents(report: "ReadingReport") -> None:
    """What was read of a person's folder, and what was left out or odd, with the reasons: the first `LISTED` each."""
    gone = f", {len(report.gone)} gone" if report.gone else ""
    waiting = f", {report.waiting} still to be read" if report.waiting else ""
    log.info("%d documents read, %d as they were%s%s", len(report.read), len(report.unchanged), gone, waiting)
    for label, problems in (("left out", report.skipped), ("note", report.notes)):
        for line in list_with_limit(problems, LISTED):
            log.warning("  %s: %s", label, line)


def show_run(report: "RunReport") -> None:
    """Where a finished run is, and what is wrong with it. Raises `InvalidInputError` where it breaks a rule."""
    resumed = f" ({report.resumed} of them from the trace)" if report.resumed else ""
    log.info("%s answered%s", format_count(report.turns, "turn"), resumed)
    if report.without_model:
        turn_id, why = next(iter(report.without_model.items()))
        what = f"{len(report.without_model)} of them without the model, which failed (turn {turn_id}: {why})"
        log.warning("%s; `--resume` asks it again", what)
    if report.usage.calls:
        log.info("server %s", describe_server_usage(report.usage))
    verdict = format_count(len(report.problems), "problem") if report.problems else "valid"
    log.info("run    %s  (%s, %s)\ntrace  %s", report.run, report.edition, verdict, report.trace)
    if report.problems:
        listed = "\n".join(f"  {problem}" for problem in report.problems)
        raise InvalidInputError(f"the run breaks rules of its edition:\n{listed}", where=str(report.run))


def describe_server_usage(usage: "ServerUsage") -> str:
    """What was sent to a server and came back, in a line."""
    again = f" ({usage.repeated:,} of them again)" if usage.repeated else ""
    cached = f" ({usage.cached_tokens:,} of them cached there)" if usage.cached_tokens else ""
    each = usage.seconds / usage.calls
    return (
        f"{format_count(usage.requests, 'request')}{again}, {each:.1f} s each, "
        f"tokens: {usage.prompt_tokens:,} of prompts{cached}, {usage.completion_tokens:,} of replies"
    )


def show_touche_run(ranked: "ToucheReport", task: "ToucheTask", output: Path) -> None:
    """Where a finished run of Touché is, and for which topics nothing was found."""
    from agent.tasks.touche.run import RUN_FILE

    show_index_built(ranked.built, ranked.arguments, task.directory)
    for number, hits in ranked.hits.items():
        if not hits:
            log.warning("topic %s: nothing found, it is not in the run", number)
    log.info("%s: %d topics, %d lines", output / RUN_FILE, len(ranked.hits), sum(map(len, ranked.hits.values())))


def show_fetched_model(path: Path, new: bool) -> None:
    """The path of a model's file, and whether it was fetched now."""
    log.info("fetched, %.0f MB" if new else "was there already, %.0f MB", path.stat().st_size / 1e6)
    typer.echo(path)


def show_models(models: "Sequence[ModelEntry]", *, as_json: bool) -> None:
    """A row a model: its name, what it is for, its size, and how to install it where it is missing."""
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
    open_stdout().print(table)


def show_hits(hits: "Sequence[Hit]", passages: "Sequence[Passage]", *, as_json: bool) -> None:
    """The passages found, best first: a table, or a JSON object a line."""
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
            to_plain_text(hit.id),
            to_plain_text(f"{text[:240]}..." if len(text) > 240 else text),
        )
    open_stdout().print(table)


def show_chats(chats: "Sequence[ChatSummary]") -> None:
    """A row a conversation, the latest first."""
    from rich.table import Table

    table = Table("", "started", "turns", "asked", "of", box=None, pad_edge=False)
    for chat in chats:
        started, source = chat.started[:16].replace("T", " "), to_plain_text(Path(chat.source).name)
        table.add_row(str(chat.id), started, str(chat.turns), to_plain_text(chat.title), source)
    open_stdout().print(table if chats else "There are no conversations.")


def show_measures(runs: "Sequence[Scores]", measures: "Sequence[str]", *, per_turn: bool, as_json: bool) -> None:
    """A row for each measure that a run has; two runs stand side by side, with the p-value of their difference."""
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
            values = "  ".join(_format_value(run.turns[turn_id].get(measure)) for run in runs for measure in measures)
            typer.echo(strip_control_characters(f"{turn_id}\t{values}"))
    pair = len(runs) == 2
    names = [Column(to_plain_text(run.name)) for run in runs]
    table = Table("", *names, "turns", *(["p"] if pair else []), box=None, pad_edge=False)
    for measure in measures:
        turns = " / ".join(dict.fromkeys(str(len(run.by_turn(measure))) for run in runs))
        shown = [f"{run.mean(measure):.3f}" if run.by_turn(measure) else "-" for run in runs]
        p = ["-" if "-" in shown else f"{p_value(runs[0], runs[1], measure):.3f}"] if pair else []
        table.add_row(measure, *shown, turns, *p)
    open_stdout().print(table)
    missing = "".join(f"; {run.name} lacks {run.missing}" for run in runs if run.missing)
    log.info("%d turns judged%s", len(runs[0].turns), missing)


def show_judged(judged: "JudgedRuns", measures: "Sequence[str]", *, per_turn: bool, as_json: bool) -> None:
    """The scores of judged runs, and how far their judge agrees with people; in JSON on a line of its own."""
    import msgspec

    show_measures(judged.scores, measures, per_turn=per_turn, as_json=as_json)
    if judged.output:
        log.info("the verdicts are in %s; --judge %s takes them from there", judged.output, judged.output)
    if not (agreement := judged.agreement):
        return
    if as_json:
        typer.echo(msgspec.json.encode({"agreement": agreement}).decode())
        return
    taus = "".join(f", Kendall's tau of {measure} {tau:.3f}" for measure, tau in agreement.tau.items())
    verdicts = format_count(agreement.verdicts, "verdict")
    typer.echo(f"{verdicts} of people: {agreement.equal:.1%} equal, Cohen's kappa {agreement.kappa:.3f}{taus}")


def _format_value(value: float | None) -> str:
    return "   -  " if value is None else f"{value:.4f}"


def show_report(path: Path) -> None:
    """Where a report is, and how large."""
    log.info("%s: written, %.1f MB; open it in a browser", path, path.stat().st_size / 1e6)


def show_problems(verdict: "Verdict", *, as_json: bool) -> None:
    """All problems of a run, warnings on stderr. Raises `InvalidInputError` for errors, as the exit code shows."""
    import msgspec

    for warning in () if as_json else verdict.warnings:
        log.warning("warning: %s", warning)
    if as_json:
        found = {"valid": not verdict.problems, "run": str(verdict.run), "turns": verdict.turns}
        found |= {"problems": verdict.problems, "warnings": verdict.warnings}
        typer.echo(msgspec.json.encode(found).decode())
    elif not verdict.problems:
        typer.echo(f"{verdict.run}: valid ({format_count(verdict.turns, 'turn')})")
    else:
        for problem in verdict.problems:
            typer.echo(strip_control_characters(str(problem)))
    if verdict.problems:
        raise InvalidInputError(format_count(len(verdict.problems), "problem"), where=str(verdict.run))


def show_changes(changes: "Sequence[Problem]", path: Path) -> None:
    """What was changed in a mended copy of a run."""
    for change in changes:
        log.info("%s", change)
    log.info("%s: written, %d changes", path, len(changes))


def show_lines_written(topics: int, oddities: "Sequence[Problem]", path: Path) -> None:
    """What was odd about a topics file, and for how many topics a file was written."""
    for problem in oddities:
        log.warning("%s", problem)
    log.info("%s: %d topics", path, topics)


def report_mcp_start(url: str, token: str) -> None:
    """Where the server listens, and what its clients have to send. It is said on stderr, however quiet it is to be."""
    typer.echo(f"convagent: listening at {url}; Ctrl-C ends it\nAuthorization: Bearer {token}", err=True)


def report_server_start(*, open_browser: bool) -> "Callable[[ServerStart], None]":
    """A function to call once the server listens: it says the address, where what is asked goes, and who can reach it.

    The browser is not given the address, which other users would see among the processes, but a file that leads there.
    """

    def on_start(start: "ServerStart") -> None:
        if not is_quiet():  # and not logged: what is logged shows no keys
            typer.echo(
                f"convagent answers at {start.address_with_token} (Ctrl-C ends it). {start.destination}", err=True
            )
        if start.listens != start.address:
            log.info("it listens on %s (a proxy shows it at the address above)", start.listens)
        for warning in start.warnings:
            log.warning("%s", warning)
        if open_browser:
            typer.launch(write_redirection(start.address_with_token) if start.token else start.address)

    return on_start


def write_redirection(address: str) -> str:
    """A page for this user alone that leads to an address, gone at the end; where it is."""
    import atexit
    import os
    import tempfile
    import threading

    descriptor, name = tempfile.mkstemp(suffix=".html", prefix="convagent-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Go on</a>'
        )
    gone = threading.Timer(OPENING_SECONDS, Path(name).unlink, (True,))  # also where the process is killed later
    gone.daemon = True
    gone.start()
    atexit.register(Path(name).unlink, missing_ok=True)
    return Path(name).as_uri()


def show_new_user(name: str, token: str, path: Path) -> None:
    """The token of a new user, which is shown this once; what to do with it."""
    log.info("%s: %s may ask. The token is shown this once; only a hash of it is kept:", path, name)
    typer.echo(token)
    log.info("Opened once with ?token=TOKEN at the end of the server's address, it signs a browser in.")


def show_forgotten(name: str, chats: int, statements: int) -> None:
    """What of a user was deleted."""
    log.info("%s: %d conversations and %d statements deleted", name, chats, statements)


def show_users(names: "Sequence[str]") -> None:
    """The names of users, one a line."""
    for name in names:
        typer.echo(name)
