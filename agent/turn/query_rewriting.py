"""The turn made searchable: what the utterance leaves unsaid, and a hypothetical answer.

A small model cannot rewrite a question, but it knows by likelihood which phrase of the conversation the question
refers to; so it chooses among the phrases that are there. A larger one rewrites in its own words (docs/log.md has the
figures).
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

import prompts
from agent.models.protocol import Conversation, LanguageModel, Task
from indexes.text.analysis import extract_stems
from indexes.text.sentences import extract_phrases
from schemas.records import Message, Plan, Query

HYDE_TOKENS = 64  # of a hypothetical answer
SEEDS_PER_RUN = 1000  # a run's seed is that many for its samples
CONTEXT_PHRASES = 3  # phrases of the conversation that join the query
MAX_CANDIDATE_PHRASES = 40  # the latest phrases; each costs its own tokens
RECENT_MESSAGES = 4  # messages before the utterance whose phrases are considered, beside the first of all


class RewriteReply(Struct):
    """What a larger model replies."""

    text: Annotated[str, Meta(max_length=300)] = ""


def rewrite_query(conversation: Conversation, llm: LanguageModel, plan: Plan, human_rewrite: str = "") -> Query:
    """What to search for. Parts that a model cannot give are empty; the person's own words are always there.

    A human rewrite that is handed over (`resolved`) leaves nothing to be guessed but the answer.
    """
    *history, last = conversation.messages
    answers = (
        _generate_hypothetical_answers(conversation, llm, plan) if "hyde" in plan.query and plan.retrieval_depth else ()
    )
    earlier = tuple(message.text for message in history if message.role == "user")
    if not history or human_rewrite:
        return Query(last.text, human_rewrite, hypothetical_answers=answers, earlier_utterances=earlier)
    context: tuple[str, ...] = ()
    if "context" in plan.query and llm.writes_answers:
        human_rewrite = _write_rewrite(conversation, llm)
    elif "context" in plan.query:
        context = _select_context_phrases(conversation, llm)
        human_rewrite = f"{last.text} ({', '.join(context)})" if context else last.text
    return Query(last.text, human_rewrite, context, answers, history[-1].text, earlier)


def _generate_hypothetical_answers(conversation: Conversation, llm: LanguageModel, plan: Plan) -> tuple[str, ...]:
    """What the model would answer out of hand: the facts may be wrong, the words are often those of a passage."""
    instruction = prompts.render("hyde").instruction
    seeds = [plan.seed * SEEDS_PER_RUN + number for number in range(plan.hyde_samples)]
    tasks = (Task("hyde", instruction, max_tokens=HYDE_TOKENS, seed=seed) for seed in seeds)
    return tuple(answer for task in tasks if (answer := llm.ask(conversation, task, str)))


def _write_rewrite(conversation: Conversation, llm: LanguageModel) -> str:
    """The utterance as the model says it again."""
    prompt = prompts.render("rewrite")
    return llm.ask(conversation, Task("rewrite", prompt.instruction, prompt.opening), RewriteReply).text.strip()


def _select_context_phrases(conversation: Conversation, llm: LanguageModel) -> tuple[str, ...]:
    """The phrases of the conversation that the last utterance most likely refers to, likeliest first."""
    *history, last = conversation.messages
    candidates = list(_unsaid_phrases(history, last.text))[-MAX_CANDIDATE_PHRASES:]
    prompt = prompts.render("context")
    scores = llm.score(conversation, Task("context", prompt.instruction, prompt.opening), candidates)
    ranked = sorted(zip(scores, candidates, strict=True), key=lambda pair: -pair[0])
    return tuple(phrase for _, phrase in ranked[:CONTEXT_PHRASES])


def _unsaid_phrases(history: Sequence[Message], utterance: str) -> Iterator[str]:
    """Each phrase once, oldest first, if it holds a word that the utterance does not."""
    said = set(extract_stems(utterance))
    seen: set[tuple[str, ...]] = set()
    messages = list(history[-RECENT_MESSAGES:])
    for message in messages if history[0] in messages else [history[0], *messages]:
        for phrase in extract_phrases(message.text):
            words = tuple(extract_stems(phrase))
            if words and words not in seen and not set(words) <= said:
                seen.add(words)
                yield phrase
