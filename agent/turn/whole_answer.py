"""Answers that need whole documents: what all rows of a table say, the newest of several documents, and summaries."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.models.protocol import Conversation
from agent.turn.answer_generation import is_writer
from agent.turn.answer_writing import Writer, write_response
from agent.turn.conclusions.editions import find_newest
from agent.turn.conclusions.tables.answer import compute_over_tables
from agent.turn.extractive_answer import LengthLimit
from agent.turn.summary import SUMMARY_WORDS, compare_documents, summarise
from indexes.documents.whole_documents import WholeDocuments
from indexes.ranking.vectors import Embed
from schemas.records import Hit, Plan, Query, WholeAnswer
from schemas.tuning import AnswerTuning


def answer_from_whole_documents(
    utterances: Sequence[str],
    documents: WholeDocuments,
    search: Callable[[Query], tuple[Hit, ...]],
    embed: Embed | None,
    tuning: AnswerTuning,
) -> WholeAnswer | None:
    """What a table as a whole says, the newest document of a kind, or a summary; None of any other question.

    `utterances` are the person's, in order.
    """
    *earlier, utterance = utterances
    return (
        compute_over_tables(utterance, documents, earlier)
        or find_newest(utterance, documents, tuning)
        or compare_documents(utterance, documents, embed, tuning)
        or summarise(utterance, documents, search, embed, tuning)
    )


def write_whole_answer(
    whole: WholeAnswer, conversation: Conversation, writer: Writer, embed: Embed | None, plan: Plan
) -> WholeAnswer:
    """A summary or comparison in the words of a model that writes; as it is where none does, or nothing is supported.

    Each sentence is held against the passages, as in any other answer. Raises `ModelError` as `write_response` does.
    """
    if not whole.to_write or not is_writer(writer.llm, plan):
        return whole
    limit = LengthLimit(SUMMARY_WORDS, plan.response_tokens)
    writer = replace(writer, step="summarise")
    response = write_response(conversation, (), whole.to_write, writer, embed, limit, plan)
    if not response.sentences:
        return whole
    return WholeAnswer(response, tuple(passage for passage in whole.to_write if passage.id in response.used))
