"""Stopping an answer from another thread: a token that is checked between the steps of a turn."""

import threading
from dataclasses import dataclass, field

from schemas.errors import RunError


class AnswerCancelledError(RunError):
    """The person no longer wants the answer."""


@dataclass(frozen=True, slots=True)
class CancellationToken:
    """Says whether an answer is still wanted. Whoever wants it no longer cancels; whoever answers checks."""

    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Ask for the answer to be stopped; it is after the step in hand."""
        self._cancelled.set()

    def raise_if_cancelled(self) -> None:
        """Raises `AnswerCancelledError` once `cancel` was called."""
        if self._cancelled.is_set():
            raise AnswerCancelledError("the answer was stopped")
