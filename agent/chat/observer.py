"""Who waits for an answer: is told of each step, shown what is written as far as it was checked, and may cancel it."""

from dataclasses import dataclass, field

from agent.models.cancellation import CancellationToken
from agent.models.protocol import Listener, ignore_call
from agent.turn.answer_writing import ResponseListener
from schemas.records import Call, Response

STEP_MESSAGES = {
    "hyde": "thought of words to search for",
    "context": "looked for what the question refers to",
    "rewrite": "made the question stand alone",
    "statements": "weighed what is known about you",
    "write": "wrote the answer",
    "summarise": "wrote the summary",
    "correct": "wrote a sentence once more",
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
