"""The queue of questions: one thread answers them one at a time, taking turns between the users who wait."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agent.chat.observer import Observer, describe_call
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

    user: str = ""
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


_Waiting = deque[tuple[QueuedQuestion[Any], Work[Any]]]


class RequestQueue:
    """Where questions wait. Use it as a context manager: at its end, questions that are left are cancelled.

    The thread is a daemon: an answer that hangs (a model's server that says nothing) does not keep the process alive.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}  # by user; the first one's first question is the next
        self._answering: QueuedQuestion[Any] | None = None
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._answer_questions, name="answering", daemon=True)
        self._thread.start()

    def __enter__(self) -> "RequestQueue":
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            left = [job for waiting in self._waiting.values() for job, _work in waiting]
            for job in (*left, *filter(None, [self._answering])):
                job.cancel()
            self._changed.notify()
        self._thread.join(END_SECONDS)

    def is_hanging(self) -> bool:
        """Whether an answer did not end when the queue did."""
        return self._ended and self._thread.is_alive()

    def submit(self, work: Work[T], user: str = "") -> QueuedQuestion[T]:
        """Put a question at the end of its user's. Raises `BusyError` where too many are waiting."""
        job: QueuedQuestion[T] = QueuedQuestion(user)
        with self._changed:
            self._forget_cancelled()
            counts = {name: len(waiting) for name, waiting in self._waiting.items()}
            if self._answering is not None:
                counts[self._answering.user] = counts.get(self._answering.user, 0) + 1
            own, all_users = counts.get(user, 0), sum(counts.values())
            if own >= MAX_WAITING_OF_USER or all_users >= MAX_WAITING:
                many = own if own >= MAX_WAITING_OF_USER else all_users
                raise BusyError(f"{many} questions are waiting already", remedy="Ask again in a while.")
            self._waiting.setdefault(user, deque()).append((job, work))
            self._changed.notify()
        return job

    def count_before(self, job: QueuedQuestion[Any]) -> int:
        """How many questions are answered before this one: 0 for one that does not wait."""
        with self._changed:
            self._forget_cancelled()
            users = list(self._waiting)
            own = [other for other, _work in self._waiting.get(job.user, ())]
            if job not in own:
                return 0
            place, turn = own.index(job), users.index(job.user)
            # one of each user in each round; those whose turn is earlier are ahead in the last one, too
            others = (
                min(len(self._waiting[user]), place + (number < turn))
                for number, user in enumerate(users)
                if number != turn
            )
            return place + sum(others) + (self._answering is not None)

    def _answer_questions(self) -> None:
        while (taken := self._take_next()) is not None:
            _run_job(*taken)
            with self._changed:
                self._answering = None

    def _take_next(self) -> tuple[QueuedQuestion[Any], Work[Any]] | None:
        """The next question, as soon as there is one; None at the end. Its user's others go behind everybody's."""
        with self._changed:
            while not self._ended:
                self._forget_cancelled()
                if self._waiting:
                    user = next(iter(self._waiting))
                    waiting = self._waiting.pop(user)
                    job, work = waiting.popleft()
                    if waiting:
                        self._waiting[user] = waiting
                    self._answering = job
                    return job, work
                self._changed.wait()
        return None

    def _forget_cancelled(self) -> None:
        for user, waiting in list(self._waiting.items()):
            self._waiting[user] = deque(entry for entry in waiting if not entry[0].future.done())
            if not self._waiting[user]:
                del self._waiting[user]


def _run_job(job: QueuedQuestion[T], work: Work[T]) -> None:
    if not job.future.set_running_or_notify_cancel():
        return
    try:
        job.future.set_result(work(job.observer))
    except BaseException as error:  # raised again for whoever waits, in the page or through /v1
        job.future.set_exception(error)
