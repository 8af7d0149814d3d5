"""The turn made searchable: what the utterance leaves unsaid, and where it is wanted a hypothetical answer.

The bundled model was taught to call the search with the question that stands alone. Beside it an encoder that was
taught conversations tells which of their words the question has; without one, their likeliest phrases join it. A
larger model rewrites in its own words (docs/log.md has the figures).
"""

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import Struct

import prompts
from agent.models.bundled import REWRITER
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.turn.attribution import NEGATIONS, content_words
from agent.turn.question_words import asks_of_another, find_codes, find_names, leans_on_conversation
from indexes.ranking.vectors import EncodeTurn
from indexes.text.analysis import extract_stems, load_stop_words
from indexes.text.sentences import extract_phrases, split_sentences
from schemas.errors import ModelReplyError
from schemas.records import Message, Plan, Query
from schemas.tuning import QueryTuning

REPLY_WORDS = 60  # of the reply that the utterance follows: its beginning says what it is about
EARLIER = 4  # utterances before it, newest first; the first of all is always among them
SEPARATOR = " | "
RECENT_MESSAGES = 6  # before it that the small model reads when it calls the search, and the first of all
EARLIER_REPLY_WORDS = 24  # of the replies before the last one


def compose_conversation(query: Query) -> str:
    """The utterance, the beginning of the last reply, then the utterances before it, newest first."""
    earlier = query.earlier_utterances
    opening = earlier[:1] if len(earlier) > EARLIER else ()
    lead = " ".join(query.previous_reply.split()[:REPLY_WORDS])
    return SEPARATOR.join((query.utterance, lead, *reversed(earlier[-EARLIER:]), *opening))


def compose_search_prompt(messages: Sequence[Message]) -> str:
    """The first question, the last exchanges with the beginnings of their replies, the utterance, and what to do."""
    *history, last = messages
    older, recent = history[:-RECENT_MESSAGES], history[-RECENT_MESSAGES:]
    lines = []
    for message in (*older[:1], *recent):
        words = message.text.split()[: REPLY_WORDS if message is history[-1] else EARLIER_REPLY_WORDS]
        lines.append(f"Q: {message.text}" if message.role == "user" else f"A: {' '.join(words)}")
    return "\n".join([*lines, f"Q: {last.text}", "Call passage_search with the last question so that it stands alone."])


class CallArguments(Struct, frozen=True):
    """What a model fills in."""

    query: str


class SearchCall(Struct, frozen=True, tag_field="name", tag="passage_search"):
    """The call of the search tool, as a model that was taught it writes it."""

    arguments: CallArguments


class NoCall(Struct, frozen=True, tag_field="name", tag="none"):
    """What it writes where nothing is asked."""


MAX_OWN_WORDS = 1  # that the conversation does not have: "the price" for "how much"
MAX_SHORT = 2  # words that mean something in a question all of which its rewrite keeps: "And law?"
WORD = re.compile(r"\b(?!no[.,])[a-z]+(?:['’]t)?")


def complete_rewrite(rewrite: str, messages: Sequence[Message]) -> str:
    """The rewrite after the sentences of the utterance most of whose words it drops; empty where it asks another."""
    sentences = split_sentences(messages[-1].text)
    said = _find_stems(rewrite)
    dropped = [each for each in sentences if 2 * len(_find_stems(each) & said) < len(_find_stems(each))]
    whole, asks_another = " ".join([*dropped, rewrite]), not rewrite
    if len(sentences) == 1:
        asked = _find_content(sentences[0])
        whole, asks_another = rewrite, bool(dropped if len(asked) > MAX_SHORT else asked - said)
    return whole if not asks_another and is_faithful(whole, messages) else ""


def is_faithful(rewrite: str, messages: Sequence[Message]) -> bool:
    """Whether a rewrite keeps the numbers, names and negations of the utterance, and invents nothing.

    Its numbers and names must be of the conversation, and of its other words that mean something all but one.
    """
    utterance, said = messages[-1].text, " ".join(message.text for message in messages)
    kept = find_codes(utterance) <= find_codes(rewrite) and find_names(utterance) <= _find_stems(rewrite)
    own = _find_content(rewrite) - _find_stems(said)
    invented = (find_codes(rewrite) - find_codes(said)) | (find_names(rewrite) & own)
    return bool(kept and not invented and len(own) <= MAX_OWN_WORDS and is_negated(utterance) == is_negated(rewrite))


def is_negated(text: str) -> bool:
    """Whether a text denies something."""
    return any(word in NEGATIONS or word.endswith(("n't", "n’t")) for word in WORD.findall(text.lower()))


def _find_stems(text: str) -> frozenset[str]:
    return frozenset(extract_stems(text))


def _find_content(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in content_words(text))


_PUNCTUATION = string.punctuation + "“”‘’…–—"
MAX_CALL_TOKENS = 80
SEEDS_PER_RUN = 1000  # distinct seeds for the samples of one run


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
    if "rewrite" in plan.query and (llm.writes_answers or REWRITER in llm.adapters):
        query = replace(query, rewrite=write_question(conversation.messages, llm))
        if query.rewrite and (llm.writes_answers or plan.tuning.query.needs_pointing):  # it says all that is needed
            return query
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


def write_question(messages: Sequence[Message], llm: LanguageModel) -> str:
    """The question that stands alone; empty where nothing is asked, or what is written asks something else."""
    if llm.writes_answers:
        asked = Message("user", compose_search_prompt(messages))
        shown = Conversation(prompts.render("rewrite").instruction, (*prompts.examples("rewrite"), asked))
        said = llm.ask(shown, Task("rewrite", max_tokens=MAX_CALL_TOKENS), str)
        return complete_rewrite(" ".join(said.split()), messages)
    call = call_search(messages, llm)
    return complete_rewrite(call.arguments.query, messages) if isinstance(call, SearchCall) else ""


def call_search(messages: Sequence[Message], llm: LanguageModel) -> SearchCall | NoCall | None:
    """What the small model calls, as it was taught; None where its call has no end."""
    prompted = Conversation("", (Message("user", compose_search_prompt(messages)),))
    task = Task("call", max_tokens=MAX_CALL_TOKENS, adapter=REWRITER)
    try:
        return llm.ask(prompted, task, SearchCall | NoCall)  # type: ignore[arg-type]  # a union is a type as well
    except ModelReplyError:
        return None


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
