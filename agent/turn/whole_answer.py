"""Answers that need whole documents: what all rows of a table say, the newest of several documents, and summaries."""

from collections.abc import Callable, Sequence

from agent.turn.conclusions.editions import find_newest
from agent.turn.conclusions.tables.answer import compute_over_tables
from agent.turn.summary import compare_documents, summarise
from agent.turn.whole_documents import WholeAnswer, WholeDocuments
from indexes.ranking.vectors import Embed
from schemas.records import Hit, Query
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
