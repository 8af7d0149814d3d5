"""When a request to a server that failed is sent again: a few times, and as long as a busy server says when."""

import math
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime

from agent.models.cancellation import CancellationToken
from schemas.errors import ModelError

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


MAX_FAILURES = 3  # of one request, until it counts as failed; those at which the server says when to come back are none
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds; twice as long after each failure
JITTER = 0.25  # the part of a pause by which it may be longer, so that not all come back at once
_random = random.SystemRandom()


class TransientError(ModelError):
    """A failure that may pass: no connection, no reply in time, HTTP 408, 409, 429 or 5xx."""

    def __init__(self, what: str, *, where: str, remedy: str, retry_after: float | None = None) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.retry_after = retry_after  # seconds that the server asked us to wait


class Resending:
    """The attempts at one request. All pauses that a server asks for together last `patience_seconds` at most."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience = patience_seconds
        self._attempts = self._failures = 0

    def choose_pause(self, error: TransientError) -> float:
        """The seconds until the request is sent again. Raises `error` where it is not."""
        pause = min(FIRST_PAUSE * 2.0**self._attempts, LONGEST_PAUSE)
        self._attempts += 1
        if error.retry_after is None:
            self._failures += 1
            if self._failures == MAX_FAILURES:
                raise error
        else:
            pause = max(pause, error.retry_after)
            self._patience -= pause
            if self._patience < 0:
                raise error
        return pause * (1 + _random.uniform(0, JITTER))


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a Retry-After header (RFC 9110, 10.2.3: a number or a date); None where there is none of sense."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
