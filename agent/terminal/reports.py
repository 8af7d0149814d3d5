"""What commands print of their results: indexes, runs, measures, models, problems, kept conversations, servers."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agent.terminal.output import open_stdout, print_json, print_table, to_plain_text
from agent.terminal.settings import is_quiet, log
from indexes.text.control_characters import strip_control_characters
from schemas.errors import InvalidInputError, format_count, list_with_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.evaluation.scores import Scores
    from agent.models.catalogue import ModelEntry, RecommendedModel
    from agent.runs.answer_topics import RunReport
    from agent.runs.validation import Verdict
    from agent.tasks.touche import ToucheReport, ToucheTask
    from indexes.corpora.corpus import Corpus
    from indexes.documents.document_index import ReadingReport
    from indexes.index_builder import BuildReport
    from indexes.passage_index import Index
    from indexes.sharding.sharded_index import Verification
    from schemas.records import ChatSummary, Hit, Passage

OPENING_SECONDS = 60.0  # that a browser has to open a page
LISTED = 10  # files of a folder that are named, of each kind


def show_index_built(built: "BuildReport", corpus: "Corpus", path: Path) -> None:
    for problem in built.problems:
        log.warning("%s", problem)
    for file in corpus.skipped_files:
        log.warning("%s: not a kind of passage file, left out", file)
    info = built.info
    skipped = f", {info.skipped} skipped" if info.skipped else ""
    pace = f" ({info.passages / info.seconds:,.0f} passages/s)" if info.seconds >= 1 else ""
    log.info("%s: %s%s in %.1f s%s", path, format_count(info.passages, "passage"), skipped, info.seconds, pace)
    if info.segmentation:
        log.info("documents were cut into %s", info.segmentation)


def show_embedding_done(passages: int, path: Path) -> None:
    """How many passages of an index have their vectors, if any have."""
    if passages:
        log.info("%s: %s embedded", path, format_count(passages, "passage"))


def show_compressed(size: int, passages: int, path: Path) -> None:
    """What the compressed vectors of so many passages take of memory, in bytes."""
    log.info("%s: compressed to %.0f bytes a passage, %.1f MB in all", path, size / passages, size / 1e6)


def show_index(index: "Index", path: Path) -> None:
    info, vectors = index.info, index.vector_infos
    compressed = [each.compressed for each in vectors if each.compressed]
    rows = {
        "index": f"{path}, {sum(file.stat().st_size for file in path.rglob('*') if file.is_file()) / 1e6:.1f} MB",
        "passages": f"{info.passages}" + (f" ({info.skipped} skipped)" if info.skipped else ""),
        "shards": f"{info.shards or 'none'}",
        "analyzer": info.analyzer,
        "segments": info.segmentation or "none: the passages are as they came",
        "sources": ("\n" + " " * 10).join(info.sources),
        "vectors": f"{vectors[0].model}, {vectors[0].size} numbers each" if vectors else "none",
        "made by": f"{info.made_by} in {info.seconds} s",
    }
    if vectors:  # in memory, to search by meaning
        size = sum(each.file.bytes for each in compressed) or 4 * vectors[0].size * info.passages
        rows["vectors"] += f", {size / 1e6:,.1f} MB in memory" + (f" ({compressed[0].recipe})" if compressed else "")
    for name, value in rows.items():
        typer.echo(f"{name:10}{value}")


def show_verification(found: "Verification", path: Path) -> None:
    typer.echo(f"{path}: {format_count(found.files, 'file')}, {found.bytes / 1e6:.1f} MB, are as they were built")
    if found.vectors:
        compressed = ", and those compressed are theirs" if found.compressed else ""
        typer.echo(f"{path}: {found.vectors} vectors are whole{compressed}")


def show_documents(report: "ReadingReport") -> None:
    """What was read of a person's folder, and what was left out or odd, with the reasons: the first `LISTED` each."""
    gone = f", {len(report.gone)} gone" if report.gone else ""
    waiting = f", {report.waiting} still to be read" if report.waiting else ""
    found = format_count(len(report.read) + len(report.unchanged), "document")
    read = f"{len(report.read)} read now" if report.read else "nothing changed"
    log.info("%s, %s%s%s", found, read, gone, waiting)
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
    verdict = format_count(len(report.problems), "problem") if report.problems else "valid"
    log.info("run    %s  (%s, %s)\ntrace  %s", report.run, report.edition, verdict, report.trace)
    if report.problems:
        listed = "\n".join(f"  {problem}" for problem in report.problems)
        raise InvalidInputError(f"the run breaks rules of its edition:\n{listed}", where=str(report.run))


def show_touche_run(ranked: "ToucheReport", task: "ToucheTask", output: Path) -> None:
    from agent.tasks.touche import RUN_FILE

    show_index_built(ranked.built, ranked.arguments, task.directory)
    for number, hits in ranked.hits.items():
        if not hits:
            log.warning("topic %s: nothing found, it is not in the run", number)
    log.info("%s: %d topics, %d lines", output / RUN_FILE, len(ranked.hits), sum(map(len, ranked.hits.values())))


def show_models(models: "Sequence[ModelEntry]", others: "Sequence[RecommendedModel]", *, as_json: bool) -> None:
    """A row a model: its name, what it is for, its size, and how to install it where it is missing; then others."""
    if as_json:
        print_json((*models, *others))
        return
    from rich.markup import escape
    from rich.table import Column

    rows = []
    for model in models:
        missing = escape(model.remedy and f"not installed: {model.remedy}")
        rows.append((model.name, model.kind, f"{model.bytes / 1e6:.0f} MB" if model.bytes else "-", missing))
    print_table(("name", "for", "size", ""), rows)
    if others:
        typer.echo("\nTo be had: convagent model pull NAME. They write answers, where those here quote.\n")
        columns = (Column("name", overflow="fold", min_width=43), "size", "memory", "an answer", "licence")
        print_table(columns, (model.describe() for model in others))


def show_hits(hits: "Sequence[Hit]", passages: "Sequence[Passage]", *, as_json: bool) -> None:
    """The passages found, best first: a table, or a JSON object a line."""
    found = list(enumerate(zip(hits, passages, strict=True), start=1))
    if as_json:
        for rank, (hit, passage) in found:
            row = {"rank": rank, "id": hit.id, "score": hit.score, "title": passage.title, "text": passage.text}
            print_json(row)
        return
    if not hits:
        log.info("nothing found: no passage holds any of these words")
        return
    rows = []
    for rank, (hit, passage) in found:
        text = " ".join(f"{passage.title} {passage.text}".split())
        text = f"{text[:240]}..." if len(text) > 240 else text
        rows.append((str(rank), f"{hit.score:.4f}", to_plain_text(hit.id), to_plain_text(text)))
    print_table(("rank", "score", "id", "passage"), rows)


def show_chats(chats: "Sequence[ChatSummary]") -> None:
    if not chats:
        open_stdout().print("No conversation was found.")
        return
    rows = []
    for chat in chats:
        started, source = chat.started[:16].replace("T", " "), to_plain_text(Path(chat.source).name)
        rows.append((str(chat.id), started, str(chat.turns), to_plain_text(chat.title), source))
    print_table(("", "started", "turns", "asked", "of"), rows)


def show_problems(verdict: "Verdict", *, as_json: bool) -> None:
    """All problems of a run, warnings on stderr. Raises `InvalidInputError` for errors, as the exit code shows."""
    if as_json:
        found = {"valid": not verdict.problems, "run": str(verdict.run), "turns": verdict.turns}
        print_json(found | {"problems": verdict.problems, "warnings": verdict.warnings})
    else:
        for warning in verdict.warnings:
            log.warning("warning: %s", warning)
        for problem in verdict.problems:
            typer.echo(strip_control_characters(str(problem)))
    if verdict.problems:
        raise InvalidInputError(format_count(len(verdict.problems), "problem"), where=str(verdict.run))
    if not as_json:
        typer.echo(f"{verdict.run}: valid ({format_count(verdict.turns, 'turn')})")


def show_measures(runs: "Sequence[Scores]", measures: "Sequence[str]", *, as_json: bool) -> None:
    """A row for each measure that a run has; two runs stand side by side, with the p-value of their difference.

    As JSON every turn is there, too.
    """
    from rich.table import Column

    from agent.evaluation.scores import p_value

    measures = [measure for measure in measures if any(run.by_turn(measure) for run in runs)]
    means = [{measure: run.mean(measure) for measure in measures if run.by_turn(measure)} for run in runs]
    if as_json:
        pairs = zip(runs, means, strict=True)
        print_json([{"name": r.name, "turns": r.turns, "missing": r.missing, "mean": mean} for r, mean in pairs])
        return
    rows = []
    for measure in measures:
        turns = " / ".join(dict.fromkeys(str(len(run.by_turn(measure))) for run in runs))
        row = [measure, *(f"{mean[measure]:.3f}" if measure in mean else "-" for mean in means), turns]
        if len(runs) == 2:
            row.append("-" if "-" in row else f"{p_value(runs[0], runs[1], measure):.3f}")
        rows.append(row)
    names = [Column(to_plain_text(run.name)) for run in runs]  # no markup is read in a name
    print_table(["", *names, "turns", *(["p"] if len(runs) == 2 else [])], rows)
    missing = "".join(f"; {run.name} lacks {run.missing}" for run in runs if run.missing)
    log.info("%s judged%s", format_count(len(runs[0].turns), "turn"), missing)


def report_server_start(address: str, token: str, destination: str, *, open_browser: bool) -> None:
    """The address of the pages, with the token if there is one; where what is asked goes.

    The browser is not given the address, which other users would see among the processes, but a file that leads there.
    """
    with_token = f"{address}?token={token}" if token else address
    if not is_quiet():  # and not logged: what is logged shows no keys
        typer.echo(f"convagent answers at {with_token} (Ctrl-C ends it). {destination}", err=True)
    if open_browser:
        typer.launch(write_redirection(with_token) if token else address)


def write_redirection(address: str) -> str:
    """A page for this user alone that leads to an address, gone at the end; where it is."""
    import atexit
    import tempfile
    import threading

    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Go on</a>'
    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="convagent-", delete=False) as file:
        file.write(page)
    path = Path(file.name)
    gone = threading.Timer(OPENING_SECONDS, path.unlink, (True,))  # also where the process is killed later
    gone.daemon = True
    gone.start()
    atexit.register(path.unlink, missing_ok=True)
    return path.as_uri()


def show_new_user(name: str, token: str, path: Path) -> None:
    """The token of a new user, which is shown this once; what to do with it."""
    log.info("%s: %s may ask. The token is shown this once; only a hash of it is kept:", path, name)
    typer.echo(token)
    log.info("Opened once with ?token=TOKEN at the end of the server's address, it signs a browser in.")
