"""Progress bars, on stderr; nothing is shown where stderr is no terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent.terminal.settings import is_quiet, log

if TYPE_CHECKING:
    from agent.runs.answer_topics import OnTurn
    from indexes.corpora.corpus import Corpus
    from schemas.records import TurnResult


@contextmanager
def _open_bar(name: str, total: int, done: int = 0, *, in_bytes: bool = False) -> Iterator[Callable[..., None]]:
    """A bar with a name, how many are done of how many, a `pace` in words and the time left. Call it to update it."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counts: Any = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn(name), BarColumn(), counts, TextColumn("{task.fields[pace]}"), TimeRemainingColumn())
    console = Console(stderr=True, quiet=is_quiet(), highlight=False)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=total, completed=done, pace="")
        yield lambda **changes: bar.update(task, **changes)


@contextmanager
def turn_progress(total: int, done: int) -> "Iterator[OnTurn]":
    """A bar over turns, with the seconds that one takes. Call it after each turn."""
    seconds: list[float] = []
    with _open_bar("turns", total, done) as update:

        def on_turn(answered: "TurnResult", took: float) -> None:
            seconds.append(took)
            log.debug("%s  %.1f s  %s", answered.turn_id, took, answered.query.standalone)
            update(advance=1, pace=f"{sum(seconds) / len(seconds):.1f} s a turn")

        yield on_turn


@contextmanager
def byte_progress(corpus: "Corpus") -> Iterator[Callable[[], None]]:
    """A bar over the bytes of a corpus, with passages a second. Call it after each block."""
    with _open_bar("indexing", corpus.bytes_total, in_bytes=True) as update:
        started = time.perf_counter()
        yield lambda: update(completed=corpus.bytes_read, pace=_format_pace(corpus.passages_read, started))


@contextmanager
def stage_progress(stage: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over the things of one stage: a `StageProgress`. Call it with how many are done."""
    with _open_bar(stage, total) as update:
        started = time.perf_counter()
        yield lambda done: update(completed=done, pace=_format_pace(done, started))


def _format_pace(done: int, started: float) -> str:
    return f"{done / max(time.perf_counter() - started, 1e-3):,.0f} a second"
