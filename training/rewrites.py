"""Turns with a rewrite that stands alone, as examples to learn from."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.records import Message, Query

HELD_OUT = 9
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
    def messages(self) -> tuple[Message, ...]:
        """The history and the utterance."""
        return (*self.history, Message("user", self.utterance))

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


def read_conversations(file: Path, *, held_out: bool) -> list[RewriteExample]:
    """Turns of conversations over documents: `Q:`, `A:`, and `=` before what the question asks, `-` for nothing.

    Every ninth conversation is held out. `rewrite` is empty where nothing is asked.
    """
    examples: list[RewriteExample] = []
    for number, text in enumerate(file.read_text(encoding="utf-8").strip().split("\n\n")):
        history: tuple[Message, ...] = ()
        for line in text.splitlines() if (number % HELD_OUT == 0) == held_out else ():
            mark, said = line.split(" ", 1)
            if mark == "=":
                examples.append(
                    RewriteExample("documents", history[:-1], history[-1].text, "" if said == "-" else said)
                )
            else:
                history = (*history, Message("user" if mark == "Q:" else "assistant", said))
    return examples


def read_remarks(file: Path, examples: Sequence[RewriteExample], order: random.Random) -> Iterator[RewriteExample]:
    """Remarks that ask nothing, a line each, at the end of other conversations and without any."""
    for remark in file.read_text(encoding="utf-8").splitlines():
        for history in ((), *(example.history for example in order.sample(examples, 2))):
            yield RewriteExample("remark", history, remark, "")


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
