"""Answers that need whole documents: what is computed over the rows of a table, and summaries."""

from collections.abc import Callable

from agent.turn.conclusions.tables.answer import compute_over_tables
from agent.turn.summary import summarise
from agent.turn.whole_documents import WholeAnswer, WholeDocuments
from indexes.ranking.vectors import Embed
from schemas.records import Hit, Query
from schemas.tuning import AnswerTuning


def answer_from_whole_documents(
    utterance: str,
    documents: WholeDocuments,
    search: Callable[[Query], tuple[Hit, ...]],
    embed: Embed | None,
    tuning: AnswerTuning,
) -> WholeAnswer | None:
    """The answer that a table as a whole has, or the summary that is asked for; None of any other question."""
    return compute_over_tables(utterance, documents) or summarise(utterance, documents, search, embed, tuning)
