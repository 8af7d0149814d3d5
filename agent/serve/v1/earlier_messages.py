"""The earlier messages of a request to `/v1` as the turns of a conversation."""

import re
from collections.abc import Iterator, Sequence

from agent.chat.collection import Collection
from agent.chat.escaping import unescape_markdown
from agent.chat.small_talk import choose_scope, complete_correction, recognise_small_talk
from agent.chat.store import ChatTurn
from indexes.text.sentences import split_sentences
from schemas.records import Message, Query, Response, Sentence, TurnResult

CITATION_MARKS = re.compile(r" \[\d+(?:, \d+)*\]")  # of our own earlier answers


def to_turns(history: Sequence[Message], collection: Collection, scope: str) -> tuple[ChatTurn, ...]:
    """The turns of earlier messages. What was talk about the talk, or asked for another scope, is so again."""
    turns: tuple[ChatTurn, ...] = ()
    said = history if history[:1] and history[0].role == "user" else (Message("user", ""), *history)
    for asked, reply in zip(said[::2], said[1::2], strict=False):
        talk = recognise_small_talk(asked.text, turns, collection)
        query = Query(complete_correction(talk.detail, turns) if talk and talk.kind == "correction" else asked.text)
        answered = TurnResult("v1", query, (), (), (), (Response(tuple(_split_reply(reply.text))),))
        scope = choose_scope(talk, scope, collection)
        turns = (*turns, ChatTurn(asked.text, answered, talk.kind if talk else "question", scope))
    return turns


def _split_reply(text: str) -> Iterator[Sentence]:
    """The sentences of an earlier answer of ours; the numbers of its sources stand for their ids."""
    place = 0
    for mark in CITATION_MARKS.finditer(text):
        yield Sentence(unescape_markdown(text[place : mark.start()].strip()), tuple(re.findall(r"\d+", mark[0])))
        place = mark.end()
    yield from (Sentence(sentence, ()) for sentence in split_sentences(unescape_markdown(text[place:])))
