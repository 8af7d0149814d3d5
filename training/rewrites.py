"""Turns with a rewrite that stands alone, as examples to learn from."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.records import Message, Query

FEW_TURNS = 3  # a history of no more says little of what it is about
FILE = Path("rewrites") / "rewrites.jsonl"


@dataclass(frozen=True, slots=True)
class RewriteExample:
    """A turn of a conversation and the question that stands alone in its place."""

    source: str  # `cast19` to `cast22`, `ikat23`, `mtrag`
    history: tuple[Message, ...]
    utterance: str
    rewrite: str

    @property
    def conversation(self) -> str:
        """What the turns of a conversation have in common: its source and first utterance."""
        return f"{self.source}: {self.history[0].text if self.history else self.utterance}"


def read_rewrites(data: Path) -> list[RewriteExample]:
    """All of them, in the file's order."""
    rows = map(json.loads, (data / FILE).read_text(encoding="utf-8").splitlines())
    return [
        RewriteExample(
            row["source"],
            tuple(Message(message["role"], message["text"]) for message in row["history"]),
            row["utterance"],
            row["rewrite"],
        )
        for row in rows
    ]


def resolve_histories(examples: list[RewriteExample]) -> Iterator[RewriteExample]:
    """The same turns after a history whose questions stand alone, where that makes another history.

    A person who speaks plainly before "And what does it cost?" is as common as one who does not.
    """
    standalone = {(each.conversation, each.utterance): each.rewrite for each in examples}
    for example in examples:
        history = tuple(
            replace(message, text=standalone.get((example.conversation, message.text), message.text))
            for message in example.history
        )
        if history != example.history:
            yield replace(example, history=history)


def switch_topics(examples: list[RewriteExample], order: random.Random) -> Iterator[RewriteExample]:
    """First questions, asked after a conversation about something else: nothing of it belongs to them."""
    others = [example for example in examples if len(example.history) > FEW_TURNS]
    for example in examples:
        if not example.history:
            yield replace(example, history=order.choice(others).history, utterance=example.rewrite)


def to_query(example: RewriteExample) -> Query:
    """The turn as it is searched for."""
    *_, last = example.history or (Message("user", ""),)
    earlier = tuple(message.text for message in example.history if message.role == "user")
    reply = last.text if last.role == "assistant" else ""
    return Query(example.utterance, previous_reply=reply, earlier_utterances=earlier)
