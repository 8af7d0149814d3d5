"""A model that says what a script tells it to. Tests use it, and a demo without weights.

A script is JSON: replies in order by step, and for scoring the fragments that the model likes, in order by step.

    {"ask": {"rewrite": [{"text": "Which bread is free of gluten?"}], "hyde": ["Rice bread is."]},
     "score": {"statements": [["coeliac"]], "sentences": [["rice bread"]]}}

A candidate that holds a liked fragment scores -1, any other -50. A conversation without messages (the prior of a
likelihood ratio) gives every candidate -25 and uses up nothing of the script.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from agent.models.protocol import Conversation, LanguageModel, Listener, Reply, Task, TextListener
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError, RunError
from schemas.records import Call
from schemas.wire import decode

LIKED, PRIOR, DISLIKED = -1.0, -25.0, -50.0


class Script(msgspec.Struct, forbid_unknown_fields=True):
    """What the model says, by step."""

    ask: dict[str, list[Any]] = {}
    score: dict[str, list[list[str]]] = {}


@dataclass(slots=True)
class ScriptedModel(LanguageModel):
    """Plays a script from the top. A step that asks more often than the script foresees is an error."""

    script: Script
    listen: Listener
    name: str = "scripted"
    digest: str = ""
    writes_answers: bool = False
    has_likelihoods: bool = True
    _used: dict[str, int] = field(default_factory=dict)

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        line = self._next_line("ask", self.script.ask, task.name)
        if on_text is not None:
            text = line if isinstance(line, str) else msgspec.json.encode(line).decode()
            for end in range(1, len(text) + 1):
                on_text(text[:end])
        self.listen(Call(task.name, "ask", _render_prompt(conversation, task), str(line)))
        return msgspec.convert(line, reply)

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        if not conversation.messages:
            return [PRIOR] * len(candidates)
        likes = self._next_line("score", self.script.score, task.name)
        scores = [LIKED if any(like in text for like in likes) else DISLIKED for text in candidates]
        prompt = _render_prompt(conversation, task)
        self.listen(Call(task.name, "score", prompt, candidates=tuple(candidates), scores=tuple(scores)))
        return scores

    def _next_line(self, verb: str, lines: dict[str, list[Any]], step: str) -> Any:
        place = self._used.get(f"{verb} {step}", 0)
        if place >= len(lines.get(step, [])):
            raise RunError(f"the script has no {verb} number {place + 1} for step {step!r}")
        self._used[f"{verb} {step}"] = place + 1
        return lines[step][place]

    def go_on_after(self, calls: Iterable[Call]) -> None:
        """Skip the lines that an earlier process used: a resumed run goes on in its script, too."""
        self._used.update(Counter(f"{call.verb} {call.step}" for call in calls))


def open_script(path: Path, listen: Listener) -> ScriptedModel:
    data = read_utf8(path)
    try:
        return ScriptedModel(decode(data, Script), listen, digest=hashlib.sha256(data).hexdigest())
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is no script ({error})", where=str(path)) from error


def _render_prompt(conversation: Conversation, task: Task) -> str:
    messages = [f"{message.role}: {message.text}" for message in conversation.messages]
    return "\n".join(
        [f"system: {conversation.system}", *messages, f"task: {task.instruction}", f"reply: {task.opening}"]
    )
