"""Stopping an answer from another thread: a token that is heeded between the steps of a turn, and while one waits."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from schemas.errors import RunError


class AnswerCancelledError(RunError):
    """The person no longer wants the answer."""


@dataclass(frozen=True, slots=True)
class CancellationToken:
    """Says whether an answer is still wanted. Whoever wants it no longer cancels; whoever answers checks."""

    _cancelled: threading.Event = field(default_factory=threading.Event)
    _enders: list[Callable[[], object]] = field(default_factory=list)

    def cancel(self) -> None:
        """Ask for the answer to be stopped: at once where it waits for a server, else after the step in hand."""
        self._cancelled.set()
        for end in tuple(self._enders):
            end()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def raise_if_cancelled(self) -> None:
        """Raises `AnswerCancelledError` once `cancel` was called."""
        if self.is_cancelled:
            raise AnswerCancelledError("the answer was stopped")

    def pause(self, seconds: float) -> None:
        """Wait. Raises `AnswerCancelledError` as soon as `cancel` is called."""
        self._cancelled.wait(seconds)
        self.raise_if_cancelled()

    @contextmanager
    def ending_with(self, end: Callable[[], object]) -> Iterator[None]:
        """While the block runs, `cancel` calls `end`, too, from its own thread.

        Raises `AnswerCancelledError` where it was called before.
        """
        self._enders.append(end)
        try:
            self.raise_if_cancelled()
            yield
        finally:
            self._enders.remove(end)


_in_hand: ContextVar[CancellationToken | None] = ContextVar("answer in hand", default=None)


def find_token() -> CancellationToken:
    """The token of the answer that this thread makes; one that nobody cancels where it makes none."""
    return _in_hand.get() or CancellationToken()


@contextmanager
def heed_token(token: CancellationToken) -> Iterator[None]:
    """Until the block ends, whatever this thread waits for for an answer is given up once the token is cancelled."""
    before = _in_hand.set(token)
    try:
        yield
    finally:
        _in_hand.reset(before)
