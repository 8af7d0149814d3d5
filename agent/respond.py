"""The answer: sentences, each with the passages that support it.

A small model picks sentences from the passages; a model that is large enough writes freely, held to a JSON Schema in
which passages are enumerated, and whatever its sentences cite is checked before it counts.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast

import msgspec
from msgspec import Meta, Struct

import prompts
from agent.llm.seam import LLM, Conversation, Task
from agent.select import WORDS, says_none, select
from agent.sentences import MAX_TOKENS, fitting
from indexes.words import stems
from schemas.errors import ModelReplyError
from schemas.records import Chosen, Passage, Query, Response, Sentence

if TYPE_CHECKING:
    from agent.flow import Tools

log = logging.getLogger("convagent")
SUPPORTED = 0.6  # share of a written sentence's words that its passages must hold


def respond(
    query: Query, conversation: Conversation, personal: Sequence[Chosen], passages: Sequence[Passage], tools: "Tools"
) -> tuple[Response, ...]:
    """The wanted number of answers, best first, together at most 250 tokens (by both official counts).

    They cite only `passages`; a further answer is built from passages that none before it cites, and there is none
    where these have none. Where no passage has one, the only answer says so; it is empty where there is no passage with
    a sentence in it.
    """
    plan, llm = tools.plan, tools.llm
    if not plan.parts.answer:
        return ()
    writes = llm.name != "none" and (plan.answer == "write" or (plan.answer == "auto" and llm.writes))
    tokens = MAX_TOKENS // max(1, plan.responses)  # iKAT 2025 counts the responses of a turn together
    responses: list[Response] = []
    none = Response(())
    left = list(passages)
    while left and len(responses) < plan.responses:
        shown = left[: plan.shown]
        written = _write(conversation, personal, shown, llm, tokens) if writes else Response(())
        response = written if written.sentences else select(query, personal, shown, tools.embed, tokens)
        if response.used and not says_none(response):
            responses.append(response)
            left = [passage for passage in left if passage.id not in response.used]
        else:
            none = none if none.sentences else response
            left = left[len(shown) :]
    return tuple(responses) or (none,)


def _write(
    conversation: Conversation, personal: Sequence[Chosen], passages: Sequence[Passage], llm: LLM, tokens: int
) -> Response:
    """Sentences in the model's own words; those that their passages do not support are dropped."""
    numbered = {str(n): passage for n, passage in enumerate(passages, start=1)}
    statements = [chosen.statement.text for chosen in personal]
    prompt = prompts.render("write", passages=numbered, statements=statements, words=min(WORDS, tokens))
    task = Task("write", prompt.instruction, prompt.opening, max_tokens=2 * tokens)
    try:
        draft = llm.ask(conversation, task, _draft_type(tuple(numbered)))
    except ModelReplyError as error:
        log.info("%s: sentences are picked instead", error)
        return Response(())
    sentences = [
        Sentence(text, ids)
        for text, cited in ((written.text.strip(), written.passages) for written in draft.sentences)
        if (ids := tuple(numbered[n].id for n in dict.fromkeys(cited) if _supports(numbered[n], text)))
    ]
    kept = fitting((sentence.text for sentence in sentences), tokens)
    return Response(tuple(sentences[: len(kept)]))


class Written(Struct):
    """One sentence as a model writes it."""

    text: str
    passages: list[str]


class Draft(Struct):
    """An answer as a model writes it; the empty one is that of no model."""

    sentences: list[Written] = []


def _draft_type(numbers: tuple[str, ...]) -> type[Draft]:
    """`Draft` with the passage numbers enumerated, so that no other can be cited."""
    cited = Annotated[list[Literal[numbers]], Meta(min_length=1, max_length=3)]  # type: ignore[valid-type]
    text = Annotated[str, Meta(min_length=10, max_length=300)]
    written = msgspec.defstruct("Written", [("text", text), ("passages", cited)])
    sentences = Annotated[list[written], Meta(min_length=1, max_length=6)]  # type: ignore[valid-type]
    return cast("type[Draft]", msgspec.defstruct("Draft", [("sentences", sentences)]))


def _supports(passage: Passage, text: str) -> bool:
    """Most of the words, and every number, of a sentence stand in the passage."""
    words = set(stems(text))
    found = set(stems(passage.text))
    numbers = {word for word in words if any(character.isdigit() for character in word)}
    return bool(words) and numbers <= found and len(words & found) / len(words) >= SUPPORTED
