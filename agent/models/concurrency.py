"""How many requests are under way at a server at a time: a limit that all workers of a run share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from agent.models.cancellation import CancellationToken

POLL_SECONDS = 0.2  # between two looks at whether the request is still wanted


class ConcurrencyLimit:
    """At most `most` requests at a time, from any number of threads."""

    def __init__(self, most: int) -> None:
        self._places = threading.BoundedSemaphore(most)

    @contextmanager
    def admit(self, token: CancellationToken) -> Iterator[None]:
        """One request, as soon as there is room for it. Raises `AnswerCancelledError` once the token is cancelled."""
        token.raise_if_cancelled()
        while not self._places.acquire(timeout=POLL_SECONDS):
            token.raise_if_cancelled()
        try:
            yield
        finally:
            self._places.release()
