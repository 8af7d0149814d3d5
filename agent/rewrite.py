"""The turn made searchable: what the utterance leaves unsaid, and a hypothetical answer.

A small model cannot rewrite a question, but it knows by likelihood which phrase of the conversation the question
refers to; so it chooses among the phrases that are there. A larger one rewrites in its own words (docs/log.md has the
figures).
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

import prompts
from agent.llm.seam import LLM, Conversation, Task
from agent.sentences import phrases
from indexes.words import stems
from schemas.records import Message, Plan, Query

ANSWER_TOKENS = 64  # of a hypothetical answer
SEEDS = 1000  # a run's seed is that many for its samples
CHOSEN = 3  # phrases of the conversation that join the query
CONSIDERED = 40  # the latest phrases; each costs its own tokens
RECENT = 4  # messages before the utterance whose phrases are considered, beside the first of all


class Rewrite(Struct):
    """What a larger model replies."""

    text: Annotated[str, Meta(max_length=300)] = ""


def rewrite(conversation: Conversation, llm: LLM, plan: Plan, resolved: str = "") -> Query:
    """What to search for. Parts that a model cannot give are empty; the person's own words are always there.

    A human rewrite that is handed over (`resolved`) leaves nothing to be guessed but the answer.
    """
    *heard, last = conversation.messages
    answers = _imagined(conversation, llm, plan) if "answer" in plan.query and plan.searched else ()
    earlier = tuple(message.text for message in heard if message.role == "user")
    if not heard or resolved:
        return Query(last.text, resolved, answers=answers, earlier=earlier)
    context: tuple[str, ...] = ()
    if "context" in plan.query and llm.writes:
        resolved = _written(conversation, llm)
    elif "context" in plan.query:
        context = _context(conversation, llm)
        resolved = f"{last.text} ({', '.join(context)})" if context else last.text
    return Query(last.text, resolved, context, answers, heard[-1].text, earlier)


def _imagined(conversation: Conversation, llm: LLM, plan: Plan) -> tuple[str, ...]:
    """What the model would answer out of hand: the facts may be wrong, the words are often those of a passage."""
    instruction = prompts.render("imagine").instruction
    seeds = [plan.seed * SEEDS + number for number in range(plan.samples)]
    tasks = (Task("imagine", instruction, max_tokens=ANSWER_TOKENS, seed=seed) for seed in seeds)
    return tuple(answer for task in tasks if (answer := llm.ask(conversation, task, str)))


def _written(conversation: Conversation, llm: LLM) -> str:
    """The utterance as the model says it again."""
    prompt = prompts.render("rewrite")
    return llm.ask(conversation, Task("rewrite", prompt.instruction, prompt.opening), Rewrite).text.strip()


def _context(conversation: Conversation, llm: LLM) -> tuple[str, ...]:
    """The phrases of the conversation that the last utterance most likely refers to, likeliest first."""
    *heard, last = conversation.messages
    candidates = list(_unsaid_phrases(heard, last.text))[-CONSIDERED:]
    prompt = prompts.render("context")
    scores = llm.score(conversation, Task("context", prompt.instruction, prompt.opening), candidates)
    ranked = sorted(zip(scores, candidates, strict=True), key=lambda pair: -pair[0])
    return tuple(phrase for _, phrase in ranked[:CHOSEN])


def _unsaid_phrases(heard: Sequence[Message], utterance: str) -> Iterator[str]:
    """Each phrase once, oldest first, if it holds a word that the utterance does not."""
    said = set(stems(utterance))
    seen: set[tuple[str, ...]] = set()
    messages = list(heard[-RECENT:])
    for message in messages if heard[0] in messages else [heard[0], *messages]:
        for phrase in phrases(message.text):
            words = tuple(stems(phrase))
            if words and words not in seen and not set(words) <= said:
                seen.add(words)
                yield phrase
