"""The answer: sentences that a model writes, or that are chosen from the passages, each with those that support it.

A model that writes is held to a JSON Schema in which the passages are enumerated.

Every sentence is held against the passages. One that none of them supports is asked for once more, with the reason,
before it gives way to a sentence that they hold. Whoever waits is shown each sentence as soon as it was checked; what
was shown stays in the answer.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct

import prompts
from agent.models.protocol import Conversation, LanguageModel, Task, read_whole_items
from agent.turn.attribution import supporting_ids, why_misstated
from agent.turn.extractive_answer import (
    LengthLimit,
    choose_own_sentences,
    extract_answer,
    nearest_sentence,
    says_not_found,
)
from agent.turn.quotes import end_sentence
from indexes.ranking.vectors import Embedder
from indexes.text.response_length import leading_within_limit
from schemas.errors import ModelError, ModelReplyError
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence
from schemas.tuning import AnswerTuning

ResponseListener = Callable[[Response], None]
CORRECTION_TOKENS = 160  # of one sentence with its citations
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class Writer:
    """A model that may write the answer, and who is shown what of it is certain while it writes."""

    llm: LanguageModel
    show: ResponseListener | None = None  # is handed the answer so far, each time that another sentence was checked
    step: Literal["write", "summarise"] = "write"  # whose prompt asks for the answer


class DraftSentence(Struct):
    """One sentence as a model writes it."""

    text: str
    passages: list[str]


class DraftAnswer(Struct):
    """An answer as a model writes it; the empty one is that of no model."""

    sentences: list[DraftSentence] = []


@dataclass(slots=True)
class _Answer:
    """An answer that grows by checked sentences, each once, up to its length."""

    tokens: int
    show: ResponseListener | None
    sentences: list[Sentence] = field(default_factory=list)
    is_full: bool = False

    def add(self, sentence: Sentence) -> bool:
        """Whether the answer has the sentence now: one without a passage that supports it never enters."""
        if not sentence.passage_ids or self.is_full or sentence in self.sentences:
            return sentence in self.sentences
        longer = [*self.sentences, sentence]
        self.is_full = len(leading_within_limit((each.text for each in longer), self.tokens)) < len(longer)
        if not self.is_full:
            self.sentences = longer
            if self.show:
                self.show(self.response)
        return not self.is_full

    @property
    def response(self) -> Response:
        return Response(tuple(self.sentences))


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
    answer = _Answer(limit.tokens, writer.show)
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


def _show_as_checked(answer: _Answer, numbered: Mapping[str, Passage]) -> Callable[[str], None]:
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


def generate_responses(
    query: Query,
    conversation: Conversation,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    writer: Writer,
    embedder: Embedder | None,
    plan: Plan,
) -> tuple[Response, ...]:
    """The wanted number of answers, best first, each as long as the plan allows.

    They cite only `passages`. A further answer is built from passages that none before it cites. Where no passage has
    an answer, the only response says so, also where there is no passage.
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
        if is_writer(writer.llm, plan):
            response = write_response(conversation, selected_statements, shown, writer, embedder, limit, plan)
        if not response.sentences:
            response = extract_answer(query, selected_statements, shown, embedder, limit, plan.tuning)
        if response.used and not says_not_found(response):
            responses.append(response)
            left = [passage for passage in left if passage.id not in response.used]
        else:
            not_found = not_found if not_found.sentences else response
            left = left[len(shown) :]
    if not (responses or not_found.used):  # not even anything that comes near
        not_found = Response((Sentence(choose_own_sentences(query, plan.tuning.answer).nothing, ()),))
    return tuple(responses) or (not_found,)


def is_writer(llm: LanguageModel, plan: Plan) -> bool:
    """Whether the model writes the answer itself; else sentences of the passages are chosen."""
    return llm.generates_text and (plan.answer == "write" or (plan.answer == "auto" and llm.writes_answers))
