"""Progress bars, on stderr; nothing is shown where stderr is no terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent.terminal.output import open_stderr
from agent.terminal.settings import log

if TYPE_CHECKING:
    from agent.runs.run import OnTurn
    from indexes.corpora.corpus import Corpus
    from schemas.records import TurnResult


@contextmanager
def turn_progress(total: int, done: int) -> "Iterator[OnTurn]":
    """A bar over turns, with the seconds a turn takes, how many are in flight and the time left.

    Call what it yields after each turn.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("turns"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"))
    console = open_stderr()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("turns", total=total, completed=done, pace="")
        seconds: list[float] = []

        def on_turn(answered: "TurnResult", took: float, in_flight: int) -> None:
            seconds.append(took)
            log.debug("%s  %.1f s  %s", answered.turn_id, took, answered.query.standalone)
            bar.update(task, advance=1, pace=f"{sum(seconds) / len(seconds):.1f} s a turn, {in_flight} in flight")

        yield on_turn


@contextmanager
def byte_progress(corpus: "Corpus") -> Iterator[Callable[[], None]]:
    """A bar over the bytes of a corpus, with passages a second. Call what it yields after each block."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("indexing"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[pace]}"))
    console = open_stderr()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("indexing", total=corpus.bytes_total, pace="")
        started = time.perf_counter()

        def on_block() -> None:
            pace = corpus.passages_read / max(time.perf_counter() - started, 1e-3)
            bar.update(task, completed=corpus.bytes_read, pace=f"{pace:,.0f} passages/s")

        yield on_block


@contextmanager
def stage_progress(stage: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over the things of one stage, named by what is done with them, with how many are done a second.

    Call what it yields with how many are done. It is a `StageProgress`.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    pace = TextColumn("{task.fields[pace]}")
    columns = (TextColumn(stage), BarColumn(), MofNCompleteColumn(), pace, TimeRemainingColumn())
    console = open_stderr()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(stage, total=total, pace="")
        started = time.perf_counter()

        def on_done(done: int) -> None:
            pace = done / max(time.perf_counter() - started, 1e-3)
            bar.update(task, completed=done, pace=f"{pace:,.0f} a second")

        yield on_done
