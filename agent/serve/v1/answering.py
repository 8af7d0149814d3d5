"""A conversation that came through `/v1`: read as turns; its answer waited for or followed, and counted."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from agent.chat.citations import cited_sources, describe_source
from agent.chat.export import mark_in_markdown, separate_pieces
from agent.chat.small_talk import choose_scope, recognise_small_talk
from agent.chat.store import ChatTurn
from agent.serve.request_queue import QueuedQuestion
from agent.terminal.escaping import unescape_markdown
from indexes.documents.collection import Collection
from indexes.text.sentences import split_sentences
from schemas.records import Call, Message, Query, Response, Sentence, TurnResult

CITATION_MARKS = re.compile(r" \[\d+(?:, \d+)*\]")  # of our own earlier answers
POLL_SECONDS = 0.1  # after which it is looked for more of an answer that is being written, and for its client
Job = QueuedQuestion[ChatTurn]
T = TypeVar("T")


def to_turns(history: Sequence[Message], collection: Collection, scope: str) -> tuple[ChatTurn, ...]:
    """The turns of earlier messages. What was small talk, or asked for another scope, is so again."""
    turns: tuple[ChatTurn, ...] = ()
    said = history if history[:1] and history[0].role == "user" else (Message("user", ""), *history)
    for asked, reply in zip(said[::2], said[1::2], strict=False):
        talk = recognise_small_talk(asked.text, collection)
        answered = TurnResult("v1", Query(asked.text), (), (), (), (Response(tuple(_split_reply(reply.text))),))
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


def cut_into_pieces(response: Response) -> list[str]:
    """An answer in Markdown, in pieces to be joined, none of which is cut."""
    return separate_pieces(mark_in_markdown(response))


async def follow(job: Job) -> AsyncIterator[str]:
    """The text of an answer, sentence by sentence, each as soon as it was checked.

    An answer that is not written is there at once. Raises what the answer raised.
    """
    answer, taken = asyncio.wrap_future(job.future), 0
    try:
        while not (await asyncio.wait([answer], timeout=POLL_SECONDS))[0]:
            pieces = cut_into_pieces(job.response)
            for piece in pieces[taken:]:
                yield piece
            taken = len(pieces)
        for piece in cut_into_pieces(answer.result().answered.response)[taken:]:
            yield piece
    finally:
        answer.cancel()  # nobody hears what it raises from now on


async def wait_for_result(request: Request, job: QueuedQuestion[T]) -> T:
    """What was asked for. Raises what it raised, and `ClientDisconnect` where the client goes away first.

    Either way, nothing more is done for it.
    """
    answer = asyncio.wrap_future(job.future)
    try:
        while not (await asyncio.wait([answer], timeout=POLL_SECONDS))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return answer.result()
    finally:
        answer.cancel()  # nobody hears what it raises from now on
        job.cancel()


def count_tokens(calls: Sequence[Call]) -> tuple[int, int]:
    """How many the language model read and wrote, all prompts together; a reply from the cache as when it was made."""
    read = sum(call.tokens_read + call.cached_tokens_read for call in calls)
    return read, sum(call.tokens_written + call.cached_tokens_written for call in calls)


def list_citations(answered: TurnResult, sent: str) -> list[dict[str, Any]]:
    """The sources of what was sent of an answer; none where it repeats one before, whose numbers it has."""
    if not answered.passages:
        return []
    response = answered.response
    pieces = mark_in_markdown(replace(response, direct=""))
    kept = [sentence for sentence, piece in zip(response.sentences, pieces, strict=True) if piece in sent]
    said = replace(answered, responses=(replace(response, sentences=tuple(kept), nearby=()),))
    return [describe_source(source) for source in cited_sources(said)]
