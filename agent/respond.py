"""The answer: sentences, each with the passages that support it.

A small model picks sentences from the passages; a model that is large enough writes freely, held to a JSON Schema in
which passages are enumerated, and whatever its sentences cite is checked before it counts.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta, Struct

import prompts
from agent.llm.seam import LLM, Conversation, Task
from agent.sentences import MAX_TOKENS, fitting, response_length, split_sentences
from indexes.handful import overlap
from indexes.words import stems
from schemas.errors import ModelReplyError
from schemas.records import Chosen, Passage, Plan, Query, Response, Sentence

log = logging.getLogger("convagent")
WORDS = 90  # a human answer of the track has 80 on average
SENTENCE_WORDS = (5, 60)  # shorter ones are headings and fragments, longer ones lists
RANK = 0.05  # what a place further down the ranking costs, beside a word overlap of at most 1
REPEATED = 0.6  # share of a sentence's words that an earlier one may already have said
SUPPORTED = 0.6  # share of a written sentence's words that its passages must hold


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of a passage that may become part of the answer."""

    text: str
    rank: int  # of its passage, from 0
    place: int  # in its passage, from 0
    words: frozenset[str]
    score: float = 0.0


def respond(
    query: Query,
    conversation: Conversation,
    personal: Sequence[Chosen],
    passages: Sequence[Passage],
    llm: LLM,
    plan: Plan,
) -> tuple[Response, ...]:
    """The wanted number of answers, best first, together at most 250 tokens (by both official counts).

    They cite only `passages`; a further answer is built from passages that none before it cites, and there is none
    where no passage is left. An answer is empty only where there is no passage with a sentence in it.
    """
    responses: list[Response] = []
    left = list(passages)
    tokens = MAX_TOKENS // max(1, plan.responses)  # iKAT 2025 counts the responses of a turn together
    while plan.parts.answer and len(responses) < plan.responses and (left or not responses):
        shown = left[: plan.shown]
        written = _write(conversation, personal, shown, llm, tokens) if shown and llm.writes else Response(())
        response = written if written.sentences else _select(query, personal, shown, tokens)
        responses.append(response)
        left = [passage for passage in left if passage.id not in response.used]
    return tuple(responses)


def _select(query: Query, personal: Sequence[Chosen], passages: Sequence[Passage], tokens: int) -> Response:
    """The sentences that best answer, without repetition, in the order of their passages."""
    ranked = _by_overlap(list(_candidates(passages)), query, personal)
    chosen = _without_repetition(ranked, min(WORDS, tokens))
    picked = sorted(chosen, key=lambda candidate: (candidate.rank, candidate.place))
    kept = fitting((candidate.text for candidate in picked), tokens) or [
        _shortened(candidate.text, tokens) for candidate in picked[:1]
    ]
    return Response(tuple(Sentence(text, _holders(text, passages)) for text in kept))


def _candidates(passages: Sequence[Passage]) -> Iterator[Candidate]:
    """Every sentence once; fragments only where a passage has nothing else."""
    seen: set[str] = set()
    for rank, passage in enumerate(passages):
        sentences = list(enumerate(split_sentences(passage.text)))
        whole = [(n, text) for n, text in sentences if _is_statement(text)]
        for place, text in whole or [(n, _shortened(text, MAX_TOKENS)) for n, text in sentences]:
            if text and text not in seen:
                seen.add(text)
                yield Candidate(text, rank, place, frozenset(stems(text)))


def _is_statement(text: str) -> bool:
    """Of ordinary length, and no question: an answer is not made of either."""
    low, high = SENTENCE_WORDS
    return low <= len(text.split()) <= high and not text.endswith("?")


def _shortened(text: str, tokens: int) -> str:
    """A passage without a sentence of ordinary length still has to be quoted: its beginning, within the limit."""
    words = text.split()[: SENTENCE_WORDS[1]]
    while words and response_length(" ".join(words)) > tokens:
        words.pop()
    return " ".join(words)


def _by_overlap(candidates: list[Candidate], query: Query, personal: Sequence[Chosen]) -> list[Candidate]:
    """Best first by BM25 over the sentences themselves, for all that is known of the question and the person."""
    known = [query.utterance, query.standalone, query.standalone, *query.answers]
    asked = " ".join([*known, *(chosen.statement.text for chosen in personal)])
    scores = overlap(asked, [candidate.text for candidate in candidates])
    best = max(scores, default=0.0) or 1.0
    scored = [
        replace(candidate, score=score / best - RANK * candidate.rank)
        for candidate, score in zip(candidates, scores, strict=True)
    ]
    return sorted(scored, key=lambda candidate: -candidate.score)


def _without_repetition(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    picked: list[Candidate] = []
    said: set[str] = set()
    length = 0
    for candidate in candidates:
        repeated = len(candidate.words & said) / max(1, len(candidate.words))
        words = len(candidate.text.split())
        if picked and (repeated > REPEATED or length + words > limit):
            continue
        picked.append(candidate)
        said |= candidate.words
        length += words
    return picked


def _holders(text: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """The passages that say a sentence word for word."""
    folded = " ".join(text.split())
    return tuple(passage.id for passage in passages if folded in " ".join(passage.text.split()))


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
