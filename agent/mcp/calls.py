"""A call at work: in a thread of its own, with notifications of its progress, and stopped when it is cancelled."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from agent.models.cancellation import CancellationToken
from schemas.errors import ConvagentError, RunError

if TYPE_CHECKING:
    from threading import Lock

POLL_SECONDS = 0.1  # between two looks at what there is to tell, and at whether the call was cancelled
T = TypeVar("T")
Report = Callable[[float, float | None, str | None], Awaitable[None]]  # how much is done, of how much, and a message
log = logging.getLogger("convagent")


@dataclass(slots=True)
class CallProgress:
    """How far a call is. The thread that works writes it and heeds `token`; another one reads it."""

    token: CancellationToken = field(default_factory=CancellationToken)
    done: float = 0.0  # grows from notification to notification, over all stages
    total: float | None = None  # None where nobody knows
    message: str = ""

    def step(self, message: str) -> None:
        """One more step was done. Raises `AnswerCancelledError` once the call is cancelled."""
        self.token.raise_if_cancelled()
        if message != self.message:
            self.done, self.total, self.message = self.done + 1, None, message

    @contextmanager
    def count_stage(self, stage: str, total: int) -> Iterator[Callable[[int], None]]:
        """A `StageProgress`, whose ticks raise `AnswerCancelledError` once the call is cancelled."""
        before = self.done
        self.total, self.message = before + total, stage

        def tick(done: int) -> None:
            self.token.raise_if_cancelled()
            self.done = before + done

        yield tick

    def wait_until(self, is_done: Callable[[float], bool], find_message: Callable[[], str]) -> None:
        """Wait until `is_done`, which is called with the seconds that it may take.

        Raises `AnswerCancelledError` once the call is cancelled.
        """
        while not is_done(POLL_SECONDS):
            self.step(find_message())

    @contextmanager
    def take_turn(self, lock: "Lock", message: str) -> Iterator[None]:
        """Hold a lock until the block ends. Raises `AnswerCancelledError` once the call is cancelled."""
        self.wait_until(lambda seconds: lock.acquire(timeout=seconds), lambda: message)
        try:
            yield
        finally:
            lock.release()


async def run_call(work: Callable[[CallProgress], T], report: Report | None, limiter: anyio.CapacityLimiter) -> T:
    """What `work` gives, in a thread. Where the call is cancelled, the thread ends after the step in hand.

    Raises `ConvagentError`, whatever goes wrong.
    """
    progress, told = CallProgress(), 0.0

    def run() -> T | ConvagentError:
        """In the thread. A panic of a library in Rust is no `Exception`, and must end this call only."""
        try:
            progress.token.raise_if_cancelled()
            return work(progress)
        except ConvagentError as error:
            return error
        except BaseException as error:
            if not progress.token.is_cancelled:  # nobody waits, and the program may be ending under it
                log.error("a call failed", exc_info=error)
            return RunError(f"convagent failed ({type(error).__name__})", remedy="Its stderr says more.")

    async def tell() -> None:
        nonlocal told
        if report and (done := progress.done) > told:  # the protocol wants it to grow
            await report(done, progress.total, progress.message)
            told = done

    async def keep_telling() -> None:
        while True:
            await anyio.sleep(POLL_SECONDS)
            await tell()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_telling)
            found = await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=limiter)
            tasks.cancel_scope.cancel()
        await tell()
    finally:
        progress.token.cancel()
    if isinstance(found, ConvagentError):
        raise found
    return found
