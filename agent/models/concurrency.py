"""How many requests are under way at a server at a time: a limit that all workers of a run share.

It falls when the server fails or says that it is busy, and rises again with its replies, as the congestion window of
TCP does: additive increase, multiplicative decrease (Chiu and Jain, 1989).
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agent.models.cancellation import CancellationToken

DECREASE = 0.5
POLL_SECONDS = 0.2  # between two looks at whether the request is still wanted
log = logging.getLogger("convagent")


class ConcurrencyLimit:
    """At most `most` requests at a time, from any number of threads; fewer while the server cannot take so many."""

    def __init__(self, most: int) -> None:
        self._most, self._window = most, float(most)
        self._under_way = self._decreases = 0
        self._closed_until = 0.0  # by time.monotonic
        self._changed = threading.Condition()

    @property
    def window(self) -> int:
        """How many requests may be under way now."""
        return int(self._window)

    @contextmanager
    def admit(self, token: CancellationToken) -> Iterator[int]:
        """One request, as soon as there is room for it. What it yields is handed to `decrease` where it fails.

        Raises `AnswerCancelledError` once the token is cancelled.
        """
        with self._changed:
            token.raise_if_cancelled()
            while (pause := self._closed_until - time.monotonic()) > 0 or self._under_way >= self.window:
                self._changed.wait(min(pause, POLL_SECONDS) if pause > 0 else POLL_SECONDS)
                token.raise_if_cancelled()
            self._under_way += 1
            admitted_after = self._decreases
        try:
            yield admitted_after
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def increase(self) -> None:
        """After a reply: by one for as many replies as there are places."""
        with self._changed:
            self._window = min(self._most, self._window + 1 / self._window)
            self._changed.notify_all()

    def decrease(self, admitted_after: int, pause_seconds: float) -> None:
        """After a failure: to half, and nothing new for so long. Requests that fail together count once."""
        with self._changed:
            self._closed_until = max(self._closed_until, time.monotonic() + pause_seconds)
            if admitted_after == self._decreases:
                self._decreases += 1
                self._window = max(1.0, self._window * DECREASE)
                log.info("the server is asked %d at a time for now", self.window)
