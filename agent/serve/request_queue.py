"""The queue of questions: one thread answers them one at a time, taking turns between the users who wait."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from agent.chat.session import Observer, describe_call
from agent.models.cancellation import CancellationToken
from schemas.errors import RunError
from schemas.records import Call, Response

MAX_WAITING = 100  # questions of all users together; more are turned away
MAX_WAITING_OF_USER = 20
RETRY_SECONDS = 10  # after which it is worth asking again
END_SECONDS = 1.5  # that an answer in hand has to end when the server ends
NO_RESPONSE = Response(())
T = TypeVar("T")
Work = Callable[[Observer], T]  # answers a question


class BusyError(RunError):
    """Too many questions are waiting already."""


@dataclass(slots=True, eq=False)
class QueuedQuestion(Generic[T]):
    """A question that is waiting, being answered, or done; `calls` and `response` grow while it is answered."""

    work: Work[T]
    user: str
    future: "Future[T]" = field(default_factory=Future)
    calls: list[Call] = field(default_factory=list)
    response: Response = NO_RESPONSE  # what is written of the answer, as far as it was checked
    token: CancellationToken = field(default_factory=CancellationToken)

    @property
    def steps(self) -> list[str]:
        return list(dict.fromkeys(describe_call(call) for call in tuple(self.calls)))

    def cancel(self) -> None:
        """Stop it: at once if it is waiting, else after the step in hand."""
        self.token.cancel()
        self.future.cancel()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        observer = Observer(self.calls.append, partial(setattr, self, "response"), self.token)
        try:
            self.future.set_result(self.work(observer))
        except BaseException as error:  # raised again for whoever waits, in the page or through /v1
            self.future.set_exception(error)


class RequestQueue(AbstractContextManager["RequestQueue"]):
    """Where questions wait. Use it as a context manager: at its end, questions that are left are cancelled.

    The thread is a daemon: an answer that hangs (a model's server that says nothing) does not keep the process alive.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[QueuedQuestion[Any]]] = {}  # by user, in the order of their turns
        self._answering: QueuedQuestion[Any] | None = None
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._answer_questions, name="answering", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            for job in self._list_jobs():
                job.cancel()
            self._changed.notify()
        self._thread.join(END_SECONDS)

    def is_hanging(self) -> bool:
        """Whether an answer did not end when the queue did."""
        return self._ended and self._thread.is_alive()

    def submit(self, work: Work[T], user: str = "") -> QueuedQuestion[T]:
        """Put a question at the end of its user's. Raises `BusyError` where too many are waiting."""
        job = QueuedQuestion(work, user)
        with self._changed:
            jobs = self._list_jobs()
            own = sum(other.user == user for other in jobs)
            for many, most in ((own, MAX_WAITING_OF_USER), (len(jobs), MAX_WAITING)):
                if many >= most:
                    raise BusyError(f"{many} questions are waiting already", remedy="Ask again in a while.")
            self._waiting.setdefault(user, []).append(job)
            self._changed.notify()
        return job

    def count_before(self, job: QueuedQuestion[Any]) -> int:
        """How many questions are answered before this one: 0 for one that does not wait."""
        with self._changed:
            jobs = self._list_jobs()
            return jobs.index(job) if job in jobs else 0

    def _list_jobs(self) -> list[QueuedQuestion[Any]]:
        """The one in hand, and those that wait in the order of their answers."""
        return [*filter(None, [self._answering]), *self._list_waiting()]

    def _list_waiting(self) -> list[QueuedQuestion[Any]]:
        """Those that wait and are not cancelled, in the order of their answers: one of each user in each round."""
        left = {user: [job for job in jobs if not job.future.done()] for user, jobs in self._waiting.items()}
        self._waiting = {user: jobs for user, jobs in left.items() if jobs}
        return [job for turns in zip_longest(*self._waiting.values()) for job in turns if job]

    def _answer_questions(self) -> None:
        """One by one until the end. The others of a user whose question is taken go behind everybody's."""
        while True:
            with self._changed:
                self._answering = None
                self._changed.wait_for(lambda: self._ended or self._list_waiting())
                if self._ended:
                    return
                self._answering = job = self._list_waiting()[0]
                self._waiting[job.user] = self._waiting.pop(job.user)[1:]
            job.run()
