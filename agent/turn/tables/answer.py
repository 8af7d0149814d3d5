"""Answers that are computed over all rows of a table: "780.00 + 312.00 = 1,092.00 EUR", "7 of 22 rows"."""

from collections.abc import Sequence

from agent.models.protocol import LanguageModel
from agent.turn.quotes import to_sentence
from agent.turn.tables.execution import UnsureError, carry_out
from agent.turn.tables.plan import choose_table, plan_for
from indexes.documents.collection import WholeDocuments
from indexes.documents.tables.table import Row, list_tables
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import ENGLISH
from indexes.text.languages import find_question_language
from schemas.errors import format_count
from schemas.records import Passage, Response, Sentence, WholeAnswer

MAX_ROWS = 5  # that are shown


def compute_over_tables(
    question: str, near: Sequence[Passage], documents: WholeDocuments, llm: LanguageModel, embedder: Embedder | None
) -> WholeAnswer | None:
    """The answer that a table as a whole has; None where none is near the question, or the plan cannot be carried out.

    `question` stands alone, in English; `near` are the first passages that were found for it, of which a table that is
    asked has one.
    """
    ids = {passage.id for passage in near if passage.language == ENGLISH}
    if not ids or embedder is None or find_question_language(question) not in ("", ENGLISH):
        return None
    tables = tuple(table for table in list_tables(documents) if any(row.passage.id in ids for row in table.rows))
    if not tables:
        return None
    table = choose_table(question, tables, embedder.embed)
    plan = plan_for(question, table, llm, embedder.embed)
    try:
        result = carry_out(plan, table) if plan else None
    except UnsureError:
        return None
    return _show(result.said, [table.rows[row] for row in result.rows]) if result else None


def _show(direct: str, rows: Sequence[Row]) -> WholeAnswer:
    """The result and the rows it rests on: a few of them, and how many more there are."""
    sentences = [Sentence(row.text, (row.passage.id,)) for row in rows[:MAX_ROWS]]
    if left := len(rows[MAX_ROWS:]):
        sentences.append(Sentence(f"And {format_count(left, 'more row')}.", ()))
    passages = tuple(dict.fromkeys(row.passage for row in rows[:MAX_ROWS]))
    return WholeAnswer(Response(tuple(sentences), to_sentence(direct)), passages)
