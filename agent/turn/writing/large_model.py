"""The answer: sentences that a model writes, or that are chosen from the passages, each with those that support it.

A model that writes is held to a JSON Schema in which the passages are enumerated.

Every sentence is held against the passages. One that none of them supports is asked for once more, with the reason,
before it gives way to a sentence that they hold. Whoever waits is shown each sentence as soon as it was checked; what
was shown stays in the answer.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct

import prompts
from agent.models.bundled import WRITER
from agent.models.protocol import Conversation, LanguageModel, Task, read_whole_items
from agent.turn.attribution import supporting_ids, why_misstated
from agent.turn.extractive_answer import (
    LengthLimit,
    nearest_sentence,
)
from agent.turn.quotes import end_sentence
from agent.turn.writing.checked_answer import CheckedAnswer, Writer
from indexes.ranking.vectors import Embedder
from schemas.errors import ModelError, ModelReplyError
from schemas.records import Passage, Plan, Response, ScoredStatement, Sentence
from schemas.tuning import AnswerTuning

CORRECTION_TOKENS = 160  # of one sentence with its citations
log = logging.getLogger("convagent")


class DraftSentence(Struct):
    """One sentence as a model writes it."""

    text: str
    passages: list[str]


class DraftAnswer(Struct):
    """An answer as a model writes it; the empty one is that of no model."""

    sentences: list[DraftSentence] = []


def write_response(
    conversation: Conversation,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    writer: Writer,
    embedder: Embedder | None,
    limit: LengthLimit,
    plan: Plan,
) -> Response:
    """Sentences in the model's own words; one that the passages do not support gives way to one that they hold.

    Raises `ModelError` where the model fails before a sentence was shown; later, the answer is what was shown.
    """
    statements = [chosen.statement.text for chosen in selected_statements]
    recent = conversation.messages[-plan.tuning.answer.recent_messages :]  # older exchanges give way to passages
    shown, task = _build_writing_task(replace(conversation, messages=recent), statements, passages, writer, limit)
    numbered = {str(n): passage for n, passage in enumerate(shown, start=1)}
    answer = CheckedAnswer(limit.tokens, writer.show)
    on_text = _show_as_checked(answer, numbered) if writer.show else None
    try:
        draft = writer.llm.ask(conversation, task, draft_schema(tuple(numbered)), on_text)
        for written in draft.sentences:
            answer.add(_ground_sentence(written, numbered, conversation, writer.llm, embedder, plan.tuning.answer))
    except ModelError as error:
        if not (writer.show and answer.sentences):
            raise
        log.warning("the answer ends before its time: %s", error.what)
    return answer.response


def _build_writing_task(
    recent: Conversation, statements: Sequence[str], passages: Sequence[Passage], writer: Writer, limit: LengthLimit
) -> tuple[Sequence[Passage], Task]:
    """The passages that the prompt has room for, the lowest ranked left out first, and the task that shows them."""
    words = min(limit.words, limit.tokens)
    for count in range(len(passages), 0, -1):
        numbered = {str(n): passage for n, passage in enumerate(passages[:count], start=1)}
        prompt = prompts.render(writer.step, passages=numbered, statements=statements, words=words)
        omitted = tuple(passage.id for passage in passages[count:])
        task = Task(writer.step, prompt.instruction, prompt.opening, max_tokens=2 * limit.tokens, omitted=omitted)
        if writer.llm.fits(recent, task):
            break
    return passages[:count], task


def _show_as_checked(answer: CheckedAnswer, numbered: Mapping[str, Passage]) -> Callable[[str], None]:
    """A listener to the draft: its sentences join the answer up to the first that has to be asked for again."""
    schema = _sentence_schema(tuple(numbered))
    known = 0

    def is_certain(item: Any) -> bool:
        try:
            return answer.add(_check_sentence(msgspec.convert(item, schema), numbered))
        except msgspec.ValidationError:
            return False

    def read_draft(text: str) -> None:
        nonlocal known
        items = read_whole_items(text, "sentences")
        if len(items) != known:
            known = len(items)
            all(map(is_certain, items))

    return read_draft


def _check_sentence(written: DraftSentence, numbered: Mapping[str, Passage]) -> Sentence:
    """A sentence with the passages that support it: of those that it cites, else of all; none where none does.

    It ends with a full stop, without which the beginning of a longer sentence would be an excerpt.
    """
    text = end_sentence(written.text.strip()) or written.text.strip()
    supporting = [passage for passage in numbered.values() if not why_misstated(text, passage.text)]
    cited = [passage for passage in _list_cited(written, numbered) if passage in supporting]
    return Sentence(text, tuple(passage.id for passage in cited or supporting))


def _list_cited(written: DraftSentence, numbered: Mapping[str, Passage]) -> list[Passage]:
    return [numbered[number] for number in dict.fromkeys(written.passages) if number in numbered]


def _ground_sentence(
    written: DraftSentence,
    numbered: Mapping[str, Passage],
    conversation: Conversation,
    llm: LanguageModel,
    embedder: Embedder | None,
    tuning: AnswerTuning,
) -> Sentence:
    """A sentence that passages support: the one written, at the second attempt perhaps, or the nearest of those cited.

    A small model has only one attempt.
    """
    sentence = _check_sentence(written, numbered)
    if not sentence.passage_ids and llm.writes_answers:
        sentence = _correct_sentence(written, numbered, conversation, llm)
    if sentence.passage_ids:
        return sentence
    cited = _list_cited(written, numbered)
    instead = nearest_sentence(written.text.strip(), cited, embedder, tuning)
    return Sentence(instead, supporting_ids(instead, cited) if instead else ())


def _correct_sentence(
    written: DraftSentence, numbered: Mapping[str, Passage], conversation: Conversation, llm: LanguageModel
) -> Sentence:
    """The sentence as the model writes it once more, told why no passage supports it; with those that do now."""
    cited = {number: numbered[number] for number in dict.fromkeys(written.passages)}
    reasons = dict.fromkeys(why_misstated(written.text.strip(), passage.text) for passage in cited.values())
    prompt = prompts.render("correct", passages=cited, sentence=written.text.strip(), reason="; ".join(reasons))
    task = Task("correct", prompt.instruction, prompt.opening, max_tokens=CORRECTION_TOKENS)
    try:
        corrected = llm.ask(conversation, task, _sentence_schema(tuple(cited)))
    except ModelReplyError:
        return Sentence(written.text, ())
    return _check_sentence(corrected, numbered)


def draft_schema(numbers: tuple[str, ...]) -> type[DraftAnswer]:
    """`DraftAnswer` with the passage numbers enumerated, so that no other can be cited."""
    written = _sentence_schema(numbers)
    sentences = Annotated[list[written], Meta(min_length=1, max_length=6)]  # type: ignore[valid-type]
    return cast("type[DraftAnswer]", msgspec.defstruct("DraftAnswer", [("sentences", sentences)]))


def _sentence_schema(numbers: tuple[str, ...]) -> type[DraftSentence]:
    """`DraftSentence` with these numbers alone."""
    cited = Annotated[list[Literal[numbers]], Meta(min_length=1, max_length=3)]  # type: ignore[valid-type]
    text = Annotated[str, Meta(min_length=10, max_length=300)]
    return cast("type[DraftSentence]", msgspec.defstruct("DraftSentence", [("text", text), ("passages", cited)]))


def is_writer(llm: LanguageModel, plan: Plan) -> bool:
    """Whether the model is one that writes freely, and may; or was not taught and is told to."""
    may = plan.answer != "extract" and llm.writes_answers
    return llm.generates_text and (may or (plan.answer == "write" and WRITER not in llm.adapters))
