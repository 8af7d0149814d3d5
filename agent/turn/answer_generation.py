"""The answer: sentences, each with the passages that support it.

A small model picks sentences from the passages; a model that is large enough writes freely, held to a JSON Schema in
which passages are enumerated. Either way every sentence is held against the passages that it names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta, Struct

import prompts
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.tracks.response_length import leading_within_limit
from agent.turn.attribution import supporting_ids
from agent.turn.extractive_answer import LengthLimit, extract_answer, nearest_sentence, says_not_found
from indexes.ranking.vectors import Embed
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence
from schemas.tuning import AnswerTuning


def generate_responses(
    query: Query,
    conversation: Conversation,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    llm: LanguageModel,
    embed: Embed | None,
    plan: Plan,
) -> tuple[Response, ...]:
    """The wanted number of answers, best first, each as long as the plan allows.

    They cite only `passages`. A further answer is built from passages that none before it cites. Where no passage has
    an answer, the only response says so; it is empty where no passage has a sentence.
    """
    if not plan.parts.answer:
        return ()
    limit = LengthLimit(plan.words, plan.response_tokens)
    responses: list[Response] = []
    not_found = Response(())
    left = list(passages)
    while left and len(responses) < plan.responses:
        shown = left[: plan.context_passages]
        response = Response(())
        if is_writer(llm, plan):
            response = write_response(conversation, selected_statements, shown, llm, embed, limit, plan)
        if not response.sentences:
            response = extract_answer(query, selected_statements, shown, embed, limit, plan.tuning)
        if response.used and not says_not_found(response):
            responses.append(response)
            left = [passage for passage in left if passage.id not in response.used]
        else:
            not_found = not_found if not_found.sentences else response
            left = left[len(shown) :]
    return tuple(responses) or (not_found,)


def is_writer(llm: LanguageModel, plan: Plan) -> bool:
    """Whether the model writes the answer itself; else sentences of the passages are chosen."""
    return llm.generates_text and (plan.answer == "write" or (plan.answer == "auto" and llm.writes_answers))


def write_response(
    conversation: Conversation,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    llm: LanguageModel,
    embed: Embed | None,
    limit: LengthLimit,
    plan: Plan,
) -> Response:
    """Sentences in the model's own words; one that the passages do not support gives way to one that they hold."""
    statements = [chosen.statement.text for chosen in selected_statements]
    recent = conversation.messages[-plan.tuning.answer.recent_messages :]  # older exchanges give way to passages
    shown, task = _build_writing_task(replace(conversation, messages=recent), statements, passages, llm, limit)
    numbered = {str(n): passage for n, passage in enumerate(shown, start=1)}
    draft = llm.ask(conversation, task, draft_schema(tuple(numbered)))
    grounded = dict.fromkeys(
        ground_sentence(written, numbered, embed, plan.tuning.answer) for written in draft.sentences
    )
    sentences = [found for found in grounded if found.passage_ids]
    fitting = leading_within_limit((sentence.text for sentence in sentences), limit.tokens)
    return Response(tuple(sentences[: len(fitting)]))


def _build_writing_task(
    recent: Conversation, statements: Sequence[str], passages: Sequence[Passage], llm: LanguageModel, limit: LengthLimit
) -> tuple[Sequence[Passage], Task]:
    """The passages that the prompt has room for, the lowest ranked left out first, and the task that shows them."""
    words = min(limit.words, limit.tokens)
    for count in range(len(passages), 0, -1):
        numbered = {str(n): passage for n, passage in enumerate(passages[:count], start=1)}
        prompt = prompts.render("write", passages=numbered, statements=statements, words=words)
        omitted = tuple(passage.id for passage in passages[count:])
        task = Task("write", prompt.instruction, prompt.opening, max_tokens=2 * limit.tokens, omitted=omitted)
        if llm.fits(recent, task):
            break
    return passages[:count], task


def ground_sentence(
    written: "DraftSentence", numbered: Mapping[str, Passage], embed: Embed | None, tuning: AnswerTuning
) -> Sentence:
    """A sentence with the passages that support it; where none does, the nearest that one of those it cites has."""
    text = written.text.strip()
    cited = [numbered[number] for number in dict.fromkeys(written.passages)]
    if ids := supporting_ids(text, cited):
        return Sentence(text, ids)
    instead = nearest_sentence(text, cited, embed, tuning)
    return Sentence(instead, supporting_ids(instead, cited) if instead else ())


class DraftSentence(Struct):
    """One sentence as a model writes it."""

    text: str
    passages: list[str]


class DraftAnswer(Struct):
    """An answer as a model writes it; the empty one is that of no model."""

    sentences: list[DraftSentence] = []


def draft_schema(numbers: tuple[str, ...]) -> type[DraftAnswer]:
    """`DraftAnswer` with the passage numbers enumerated, so that no other can be cited."""
    cited = Annotated[list[Literal[numbers]], Meta(min_length=1, max_length=3)]  # type: ignore[valid-type]
    text = Annotated[str, Meta(min_length=10, max_length=300)]
    written = msgspec.defstruct("DraftSentence", [("text", text), ("passages", cited)])
    sentences = Annotated[list[written], Meta(min_length=1, max_length=6)]  # type: ignore[valid-type]
    return cast("type[DraftAnswer]", msgspec.defstruct("DraftAnswer", [("sentences", sentences)]))
