"""The queue of questions: they are answered one at a time, in the order in which they came, by one thread."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agent.chat.cancellation import CancellationToken
from agent.chat.observer import Observer
from agent.chat.progress_messages import describe_call
from schemas.errors import RunError
from schemas.records import Call, Response

MAX_WAITING = 20  # questions; more are turned away
NO_RESPONSE = Response(())
T = TypeVar("T")
Work = Callable[[Observer], T]  # answers a question


class BusyError(RunError):
    """Too many questions are waiting already."""


@dataclass(slots=True)
class QueuedQuestion(Generic[T]):
    """A question that is waiting, being answered, or done; `calls` and `response` grow while it is answered."""

    future: "Future[T]" = field(default_factory=Future)
    calls: list[Call] = field(default_factory=list)
    response: Response = NO_RESPONSE  # what is written of the answer, as far as it was checked
    token: CancellationToken = field(default_factory=CancellationToken)

    @property
    def observer(self) -> Observer:
        """What keeps `calls` and `response` up to date."""
        return Observer(self.calls.append, self._keep_response, self.token)

    def _keep_response(self, response: Response) -> None:
        self.response = response

    @property
    def steps(self) -> list[str]:
        """The steps done so far, in words."""
        return list(dict.fromkeys(describe_call(call) for call in tuple(self.calls)))

    def cancel(self) -> None:
        """Stop it: at once if it is waiting, else after the step in hand."""
        self.token.cancel()
        self.future.cancel()


class RequestQueue:
    """Where questions wait. Use it as a context manager: at its end, questions that are left are cancelled."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "answering")
        self._jobs: list[QueuedQuestion[Any]] = []
        self._lock = threading.Lock()  # of requests that submit

    def __enter__(self) -> "RequestQueue":
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._jobs:
            job.cancel()
        self._thread.shutdown()

    def submit(self, work: Work[T]) -> QueuedQuestion[T]:
        """Put a question at the end of the queue. Raises `BusyError` where too many are waiting."""
        job: QueuedQuestion[T] = QueuedQuestion()
        with self._lock:
            self._jobs = [other for other in self._jobs if not other.future.done()]
            if len(self._jobs) >= MAX_WAITING:
                raise BusyError(f"{len(self._jobs)} questions are waiting already", remedy="Ask again in a while.")
            self._jobs.append(job)
            self._thread.submit(_run_job, job, work)
        return job


def _run_job(job: QueuedQuestion[T], work: Work[T]) -> None:
    if not job.future.set_running_or_notify_cancel():
        return
    try:
        job.future.set_result(work(job.observer))
    except BaseException as error:  # raised again for whoever waits, in the page or through /v1
        job.future.set_exception(error)
