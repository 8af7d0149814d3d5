"""Progress bars, on stderr; nothing is shown where stderr is no terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent.terminal.output import open_stderr
from agent.terminal.settings import log

if TYPE_CHECKING:
    from agent.runs.run import OnTurn
    from indexes.corpora.corpus import Corpus
    from schemas.records import TurnResult


@contextmanager
def _open_bar(name: str, total: int, done: int = 0, *, in_bytes: bool = False) -> Iterator[Callable[..., None]]:
    """A bar with a name, how many are done of how many, a `pace` in words and the time left. Call it to update it."""
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counts: Any = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn(name), BarColumn(), counts, TextColumn("{task.fields[pace]}"), TimeRemainingColumn())
    console = open_stderr()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=total, completed=done, pace="")
        yield lambda **changes: bar.update(task, **changes)


@contextmanager
def turn_progress(total: int, done: int) -> "Iterator[OnTurn]":
    """A bar over turns, with the seconds a turn takes, how many are in flight and the time left.

    Call what it yields after each turn.
    """
    with _open_bar("turns", total, done) as update:
        seconds: list[float] = []

        def on_turn(answered: "TurnResult", took: float, in_flight: int) -> None:
            seconds.append(took)
            log.debug("%s  %.1f s  %s", answered.turn_id, took, answered.query.standalone)
            update(advance=1, pace=f"{sum(seconds) / len(seconds):.1f} s a turn, {in_flight} in flight")

        yield on_turn


@contextmanager
def byte_progress(corpus: "Corpus") -> Iterator[Callable[[], None]]:
    """A bar over the bytes of a corpus, with passages a second. Call what it yields after each block."""
    started = time.perf_counter()
    with _open_bar("indexing", corpus.bytes_total, in_bytes=True) as update:

        def on_block() -> None:
            pace = corpus.passages_read / max(time.perf_counter() - started, 1e-3)
            update(completed=corpus.bytes_read, pace=f"{pace:,.0f} passages/s")

        yield on_block


@contextmanager
def stage_progress(stage: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over the things of one stage, with how many are done a second: a `StageProgress`.

    Call what it yields with how many are done.
    """
    started = time.perf_counter()
    with _open_bar(stage, total) as update:

        def on_done(done: int) -> None:
            update(completed=done, pace=f"{done / max(time.perf_counter() - started, 1e-3):,.0f} a second")

        yield on_done
