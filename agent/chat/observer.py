"""Who waits for an answer: is told of each step, shown what is written as far as it was checked, and may cancel it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from agent.models.cancellation import CancellationToken, heed_token
from agent.models.protocol import Listener, ignore_call
from agent.turn.writing.checked_answer import ResponseListener
from schemas.records import Call, Response

STEP_MESSAGES = {
    "hyde": "thought of words to search for",
    "context": "looked for what the question refers to",
    "rewrite": "made the question stand alone",
    "call": "called the search",
    "statements": "weighed what is known about you",
    "write": "wrote the answer",
}


def describe_call(call: Call) -> str:
    if call.verb == "search":
        return f"searched for “{call.prompt}”, {call.reply}"
    return STEP_MESSAGES.get(call.step, call.step)


@dataclass(frozen=True, slots=True)
class Observer:
    """Whoever waits. Once `token` is cancelled, the next step or sentence raises `AnswerCancelledError`."""

    on_call: Listener = ignore_call
    on_response: ResponseListener = lambda _response: None  # is handed the answer so far, with each further sentence
    token: CancellationToken = field(default_factory=CancellationToken)

    def report(self, call: Call) -> None:
        self.on_call(call)
        self.token.raise_if_cancelled()

    def show(self, response: Response) -> None:
        self.token.raise_if_cancelled()
        self.on_response(response)


NOBODY = Observer()
_waiting = ContextVar("who waits for the answer in hand", default=NOBODY)


def report_call(call: Call) -> None:
    """Tell whoever waits for the answer that this thread makes of a call of model or search."""
    _waiting.get().report(call)


@contextmanager
def attend_to(observer: Observer) -> Iterator[None]:
    """Until the block ends, this thread makes an answer for this observer, and heeds its token."""
    before = _waiting.set(observer)
    try:
        with heed_token(observer.token):
            yield
    finally:
        _waiting.reset(before)
