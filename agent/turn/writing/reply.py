"""What a model makes of the sentences that the reader chose, each of its own held against them.

It reads the question that stands alone and these sentences, numbered, best first: a large model after two exchanges
that show how, the bundled one as it was taught. What it writes stands where it says what is cited, in words of that or
of the question, with those that the reader finds there. Where its first sentence does not, the answer stays quoted:
readers choose better than models of 1.5 billion parameters (docs/log.md). What was quoted and is not cited stays; in a
chat it comes near.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import prompts
from agent.models.bundled import WRITER
from agent.models.protocol import Conversation, Task, strip_thinking
from agent.turn.quotes import end_sentence
from agent.turn.writing.checked_answer import CheckedAnswer, Writer
from agent.turn.writing.paraphrase import is_meant, keeps_order
from agent.turn.writing.sources import Source, compose_writer_prompt, find_answers, name_sources, read_written
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import extract_stems
from schemas.errors import ModelError
from schemas.records import Message, Passage, Plan, Query, Response, ScoredStatement, Sentence

log = logging.getLogger("convagent")
MAX_SENTENCES = 5  # of a reply that is asked for
Check = Callable[[str, tuple[int, ...]], tuple[str, ...]]  # of a sentence and its numbers, the passages that support it


def is_writer(writer: Writer, plan: Plan) -> bool:
    """Whether the model writes: a large one, or any that is told to; a small one never what has to be heeded."""
    is_told = plan.answer == "write" and not writer.quotes
    return writer.llm.generates_text and plan.answer != "extract" and (writer.llm.writes_answers or is_told)


def write_response(
    query: Query,
    statements: Sequence[ScoredStatement],
    quoted: Response,
    passages: Sequence[Passage],
    writer: Writer,
    embedder: Embedder | None,
    plan: Plan,
) -> Response:
    """A quoted answer in the model's words. Raises `ModelError` where it fails before a sentence was shown."""
    sources = name_sources((*quoted.sentences, *quoted.nearby), passages, plan)
    conversation, task = _ask_for(query, [chosen.statement.text for chosen in statements], sources, writer, plan)
    answer, cited_texts = CheckedAnswer(plan.response_tokens, writer.show), set[str]()

    def check(text: str, numbers: tuple[int, ...]) -> tuple[str, ...]:
        cited = [source for number, source in enumerate(sources, start=1) if number in numbers]
        says_best = 1 in numbers and set(extract_stems(quoted.direct)) <= set(extract_stems(text))
        may_stand = cited and (says_best or answer.sentences or not writer.leads)
        stands = may_stand and _is_meant(text, cited, query.standalone, embedder)
        cited_texts.update(source.text for source in cited if stands)
        return tuple(dict.fromkeys(id for source in cited if stands for id in source.passage_ids))

    _write(conversation, task, writer, check, answer)
    if not answer.sentences:
        return quoted
    said = {sentence.text for sentence in answer.sentences}
    if plan.tuning.answer.nearby_sentences:
        left = (each for each in (*quoted.sentences, *quoted.nearby) if each.text not in said)
        return replace(quoted, sentences=tuple(answer.sentences), nearby=tuple(left))
    for sentence in quoted.sentences if writer.leads else ():
        if sentence.text not in cited_texts:
            answer.add(sentence)
    return replace(quoted, sentences=tuple(answer.sentences))


def _ask_for(
    query: Query, statements: Sequence[str], sources: Sequence[Source], writer: Writer, plan: Plan
) -> tuple[Conversation, Task]:
    """What a model reads, as it was taught or after two examples."""
    if WRITER in writer.llm.adapters:
        prompt = compose_writer_prompt(query.standalone, statements, sources, min(len(sources), MAX_SENTENCES))
        asked = Conversation("", (Message("user", prompt),))
        return asked, Task("write", max_tokens=plan.response_tokens, adapter=WRITER)
    texts = {number: source.shown for number, source in enumerate(sources, start=1)}
    turn = prompts.render("write_turn", question=query.standalone, statements=statements, sources=texts).instruction
    asked = Conversation(prompts.render("write").instruction, (*prompts.examples("write"), Message("user", turn)))
    return asked, Task("write", max_tokens=plan.response_tokens)


def _is_meant(text: str, cited: Sequence[Source], question: str, embedder: Embedder | None) -> bool:
    """Whether a sentence means what it cites, and has all that the reader finds there."""
    found, stems = find_answers(question, cited, embedder), set(extract_stems(text))
    names, texts = " . ".join(source.name for source in cited), [source.text for source in cited]
    is_said = is_meant(text, texts, names, question, answers=bool(found))
    return is_said and all(words <= stems for words in found) and keeps_order(text, texts, f"{question} . {names}")


def _write(conversation: Conversation, task: Task, writer: Writer, check: Check, answer: CheckedAnswer) -> None:
    """Add the sentences that pass, as soon as they are whole; none where the first has to lead and does not pass."""
    known = 0

    def read_further(text: str, *, is_whole: bool = False) -> None:
        nonlocal known
        found = read_written(strip_thinking(text))
        may_go_on = not is_whole and text.endswith("]")  # with another number
        for said, numbers in found[known : len(found) - may_go_on]:
            known += 1
            sentence = end_sentence(said)
            if answer.sentences or known == 1 or not writer.leads:
                answer.add(Sentence(sentence, check(sentence, numbers)))

    try:
        read_further(writer.llm.ask(conversation, task, str, read_further if writer.show else None), is_whole=True)
    except ModelError as error:
        if not answer.sentences:
            raise
        log.warning("the answer ends before its time: %s", error.what)
