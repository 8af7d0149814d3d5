"""Questions on their way to an answer: one at a time, in the order in which they came, in a thread of their own."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agent.chat.progress_messages import describe_call
from agent.models.protocol import Listener
from schemas.errors import RunError
from schemas.records import Call

MAX_WAITING = 20  # questions; more are turned away
T = TypeVar("T")


class StoppedError(RunError):
    """The person no longer wants the answer."""


class BusyError(RunError):
    """Too many questions are waiting already."""


@dataclass(slots=True)
class QueuedQuestion(Generic[T]):
    """A question that is waiting, being answered, or done; `calls` grows meanwhile."""

    future: "Future[T]" = field(default_factory=Future)
    calls: list[Call] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def steps(self) -> list[str]:
        """What was done so far, in words."""
        return list(dict.fromkeys(describe_call(call) for call in tuple(self.calls)))

    def stop(self) -> None:
        """Break it off: at once if it is waiting, else after the step in hand."""
        self._stopped.set()
        self.future.cancel()

    def listen(self, call: Call) -> None:
        """Called at each step of the answer."""
        self.calls.append(call)
        if self._stopped.is_set():
            raise StoppedError("the answer was broken off")


class RequestQueue:
    """Where questions wait. Use it as a context manager: leaving it breaks off what is left."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "answering")
        self._jobs: list[QueuedQuestion[Any]] = []
        self._turn = threading.Lock()  # of requests that submit

    def __enter__(self) -> "RequestQueue":
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._jobs:
            job.stop()
        self._thread.shutdown()

    def submit(self, work: Callable[[Listener], T]) -> QueuedQuestion[T]:
        """Have it done when its turn comes. Raises `BusyError` where too many are waiting."""
        job: QueuedQuestion[T] = QueuedQuestion()
        with self._turn:
            self._jobs = [other for other in self._jobs if not other.future.done()]
            if len(self._jobs) >= MAX_WAITING:
                raise BusyError(f"{len(self._jobs)} questions are waiting already", remedy="Ask again in a while.")
            self._jobs.append(job)
            self._thread.submit(_run_job, job, work)
        return job


def _run_job(job: QueuedQuestion[T], work: Callable[[Listener], T]) -> None:
    if not job.future.set_running_or_notify_cancel():
        return
    try:
        job.future.set_result(work(job.listen))
    except BaseException as error:  # told to whoever waits, in the page or through /v1
        job.future.set_exception(error)
