"""The whole agent on one page: topic -> turns -> Answered.

A turn is rewritten, the personal statements that matter are chosen, passages are searched and read, and an answer is
built from them. Each step is a plain function that is handed all it may see; none keeps anything.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import prompts
from agent.llm.seam import LLM, Conversation
from agent.ptkb import choose_statements
from agent.respond import respond
from agent.rewrite import rewrite
from schemas.records import Answered, Hit, Message, Passage, Query, Statement, Topic, Turn


@dataclass(frozen=True, slots=True)
class Tools:
    """What a turn is answered with."""

    llm: LLM
    search: Callable[[Query], tuple[Hit, ...]]
    read: Callable[[Sequence[Hit]], tuple[Passage, ...]]
    shown: int = 5  # passages whose text the answer is built from


def answer(turn: Turn, heard: Sequence[Message], ptkb: Sequence[Statement], tools: Tools) -> Answered:
    """Everything that happens to one turn."""
    system = prompts.render("system").instruction
    conversation = Conversation(system, (*heard, Message("user", turn.utterance)))

    query = rewrite(conversation, tools.llm)
    personal = choose_statements(conversation, ptkb, tools.llm)
    hits = tools.search(query)
    passages = tools.read(hits[: tools.shown])
    response = respond(query, conversation, personal, passages, tools.llm)
    return Answered(turn.id, query, personal, hits, passages, response)


def answer_topic(topic: Topic, tools: Tools, done: Sequence[Answered] = ()) -> Iterator[Answered]:
    """The turns of a topic in order, after those that are `done` already."""
    own: tuple[Message, ...] = ()
    for number, turn in enumerate(topic.turns):
        heard = own if turn.heard is None else turn.heard  # the track's conversation where it gives one, else ours
        finished = done[number] if number < len(done) else answer(turn, heard, topic.ptkb, tools)
        own = (*own, Message("user", turn.utterance), Message("assistant", finished.response.text))
        if number >= len(done):
            yield finished
