"""The turn made searchable: what the utterance leaves unsaid, and where it is wanted a hypothetical answer.

An encoder that was taught conversations tells which of their words the question that stands alone has. Without one, a
small language model chooses among the phrases that are there: it cannot rewrite a question, but it knows by likelihood
what the question refers to. A larger one rewrites in its own words (docs/log.md has the figures).
"""

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from msgspec import Meta, Struct

import prompts
from agent.models.bundled import REWRITER
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.turn.attribution import NEGATIONS
from agent.turn.question_words import asks_of_another, find_codes, find_names, leans_on_conversation
from indexes.ranking.vectors import EncodeTurn
from indexes.text.analysis import extract_stems, load_stop_words
from indexes.text.sentences import extract_phrases, split_sentences
from schemas.records import Message, Plan, Query
from schemas.tuning import QueryTuning

REPLY_WORDS = 60  # of the reply that the utterance follows: its beginning says what it is about
EARLIER = 4  # utterances before it, newest first; the first of all is always among them
SEPARATOR = " | "
REWRITER_EARLIER = 3  # utterances before it that the rewriter reads, in their order; the first is always among them


def compose_conversation(query: Query) -> str:
    """The utterance, the beginning of the last reply, then the utterances before it, newest first."""
    earlier = query.earlier_utterances
    opening = earlier[:1] if len(earlier) > EARLIER else ()
    lead = " ".join(query.previous_reply.split()[:REPLY_WORDS])
    return SEPARATOR.join((query.utterance, lead, *reversed(earlier[-EARLIER:]), *opening))


def compose_rewriter_prompt(query: Query) -> str:
    """The utterances before, the beginning of the last reply, the utterance, and what to do with it."""
    earlier = query.earlier_utterances
    opening = earlier[:1] if len(earlier) > REWRITER_EARLIER else ()
    lines = [f"Q: {text}" for text in (*opening, *earlier[-REWRITER_EARLIER:])]
    if query.previous_reply:
        lines.append(f"A: {' '.join(query.previous_reply.split()[:REPLY_WORDS])}")
    return "\n".join([*lines, f"Q: {query.utterance}", "Rewrite the last question so that it stands alone."])


MAX_OWN_WORDS = 1  # that the conversation does not have: "the price" for "how much"
WORD = re.compile(r"[a-z]+(?:n['’]t)?")


def complete_rewrite(rewrite: str, query: Query) -> str:
    """The rewrite after the sentences of the utterance most of whose words it drops; empty where it asks another."""
    sentences = split_sentences(query.utterance)
    said = _find_stems(rewrite)
    dropped = [each for each in sentences if 2 * len(_find_stems(each) & said) < len(_find_stems(each))]
    whole = " ".join([*dropped, rewrite])
    asks_another = not rewrite or (dropped and len(sentences) == 1)
    return whole if not asks_another and is_faithful(whole, query) else ""


def is_faithful(rewrite: str, query: Query) -> bool:
    """Whether a rewrite keeps the numbers, names and negations of the utterance, and invents nothing.

    Its numbers and names must be of the conversation, as far as the query has it, and of its other words all but one.
    """
    said = " ".join((query.utterance, query.previous_reply, *query.earlier_utterances))
    kept = find_codes(query.utterance) <= find_codes(rewrite) and find_names(query.utterance) <= _find_stems(rewrite)
    own = _find_stems(rewrite) - _find_stems(said)
    invented = (find_codes(rewrite) - find_codes(said)) | (find_names(rewrite) & own)
    return bool(
        kept and not invented and len(own) <= MAX_OWN_WORDS and is_negated(query.utterance) == is_negated(rewrite)
    )


def is_negated(text: str) -> bool:
    """Whether a text denies something."""
    return any(word in NEGATIONS or word.endswith(("n't", "n’t")) for word in WORD.findall(text.lower()))


def _find_stems(text: str) -> frozenset[str]:
    return frozenset(extract_stems(text))


_PUNCTUATION = string.punctuation + "“”‘’…–—"
MAX_REWRITE_TOKENS = 48
SEEDS_PER_RUN = 1000  # distinct seeds for the samples of one run


class RewriteReply(Struct):
    """What a larger model replies."""

    text: Annotated[str, Meta(max_length=300)] = ""


def rewrite_query(
    conversation: Conversation,
    llm: LanguageModel,
    plan: Plan,
    human_rewrite: str = "",
    encode_turn: EncodeTurn | None = None,
) -> Query:
    """What to search for. Parts that the model cannot give are empty; the person's own words are always there.

    With a human rewrite (a manual run) at most the hypothetical answer is left to the model.
    """
    *history, last = conversation.messages
    wants_hyde = "hyde" in plan.query and plan.retrieval_depth
    hyde = generate_hypothetical_answers(conversation, llm, plan) if wants_hyde else ()
    earlier = tuple(message.text for message in history if message.role == "user")
    stands_alone = plan.tuning.query.needs_pointing and not leans_on_conversation(last.text)
    if not history or human_rewrite or stands_alone:  # a subject of its own: the conversation would only be noise
        return Query(last.text, human_rewrite, hypothetical_answers=hyde, earlier_utterances=earlier)
    query = Query(last.text, "", (), hyde, history[-1].text, earlier)
    if "context" in plan.query and llm.writes_answers:
        prompt = prompts.render("rewrite")
        reply = llm.ask(conversation, Task("rewrite", prompt.instruction, prompt.opening), RewriteReply)
        return replace(query, rewrite=reply.text.strip())
    if "rewrite" in plan.query and REWRITER in llm.adapters:
        query = replace(query, rewrite=write_as_taught(query, llm))
    if "context" not in plan.query:
        return query
    if plan.tuning.query.needs_pointing and asks_of_another(last.text) and earlier:
        context = earlier[-1:]
    elif encode_turn and plan.tuning.query.context_words:
        query = replace(query, encoded_text=compose_conversation(query))
        context = select_context_words(query, encode_turn, plan.tuning.query)
    else:
        context = select_context_phrases(conversation, llm, plan.tuning.query)
    return replace(query, context=context)


def generate_hypothetical_answers(conversation: Conversation, llm: LanguageModel, plan: Plan) -> tuple[str, ...]:
    """What the model would answer without any passage: the facts may be wrong, the words are often those of one."""
    instruction = prompts.render("hyde").instruction
    seeds = [plan.seed * SEEDS_PER_RUN + number for number in range(plan.hyde_samples)]
    tasks = (Task("hyde", instruction, max_tokens=plan.tuning.query.hyde_tokens, seed=seed) for seed in seeds)
    return tuple(answer for task in tasks if (answer := llm.ask(conversation, task, str)))


def write_as_taught(query: Query, llm: LanguageModel) -> str:
    """The utterance as the small model was taught to rewrite it; empty where that asks something else."""
    prompted = Conversation("", (Message("user", compose_rewriter_prompt(query)),))
    rewrite = llm.ask(prompted, Task("rewrite", max_tokens=MAX_REWRITE_TOKENS, adapter=REWRITER), str).strip()
    return complete_rewrite(rewrite, query)


def select_context_words(query: Query, encode_turn: EncodeTurn, tuning: QueryTuning) -> tuple[str, ...]:
    """The words of the conversation that the question which stands alone most likely has, likeliest first."""
    said = set(extract_stems(query.utterance))
    likeliest: dict[tuple[str, ...], tuple[float, str]] = {}
    for word, probability in encode_turn(query.encoded_text).words:
        stems = tuple(extract_stems(word))
        bare = word.strip(_PUNCTUATION)
        if probability < tuning.word_probability or set(stems) <= said or bare.lower() in load_stop_words():
            continue
        likeliest[stems] = max(likeliest.get(stems, (0.0, "")), (probability, bare))
    ranked = sorted(likeliest.values(), key=lambda pair: -pair[0])
    return tuple(word for _, word in ranked[: tuning.context_words])


def select_context_phrases(conversation: Conversation, llm: LanguageModel, tuning: QueryTuning) -> tuple[str, ...]:
    """The phrases of the conversation that the last utterance most likely refers to, likeliest first."""
    *history, last = conversation.messages
    recent = history[-tuning.recent_messages :]
    messages = recent if history[0] in recent else [history[0], *recent]
    candidates = list(_new_phrases(messages, last.text))[-tuning.candidate_phrases :]
    prompt = prompts.render("context")
    scores = llm.score(conversation, Task("context", prompt.instruction, prompt.opening), candidates)
    ranked = sorted(zip(scores, candidates, strict=True), key=lambda pair: -pair[0])
    return tuple(phrase for _, phrase in ranked[: tuning.context_phrases])


def _new_phrases(messages: Sequence[Message], utterance: str) -> Iterator[str]:
    """Each phrase once, oldest first, if it holds a word that the utterance does not."""
    known = set(extract_stems(utterance))
    seen: set[tuple[str, ...]] = set()
    for message in messages:
        for phrase in extract_phrases(message.text):
            words = tuple(extract_stems(phrase))
            if words and words not in seen and not set(words) <= known:
                seen.add(words)
                yield phrase
