"""Answers that are computed over all rows of a table: "780.00 + 312.00 = 1,092.00 EUR", "7 of 22 rows"."""

from collections.abc import Sequence

from agent.turn.quotes import to_sentence
from agent.turn.reading import find_foreign_language, find_margin
from agent.turn.tables.execution import UnsureError, carry_out
from agent.turn.tables.planning import choose_tables, plan_for
from indexes.documents.collection import WholeDocuments
from indexes.documents.tables.table import Row, Table, list_tables
from indexes.ranking.vectors import Embedder, Read
from schemas.errors import format_count
from schemas.records import Passage, Response, Sentence, WholeAnswer

MAX_ROWS = 5  # that are shown
SURE = 0.3  # a plan's chance, from which it is carried out
SURE_ELSEWHERE = 1.0  # the reader's margin, above which a passage that is no row answers, where no row does more surely


def compute_over_tables(
    question: str, near: Sequence[Passage], documents: WholeDocuments, embedder: Embedder | None
) -> WholeAnswer | None:
    """The answer that a table as a whole has; None where none is near the question, or what is asked of it is not sure.

    `question` stands alone; `near` are the first passages found for it, one of them of the table that is asked.
    """
    ids = {passage.id for passage in near}
    if embedder is None or embedder.read_table is None:
        return None
    tables = tuple(table for table in list_tables(documents) if any(row.passage.id in ids for row in table.rows))
    asked = choose_tables(question, tables, embedder.embed)
    plans = [(plan_for(question, table, embedder.read_table, embedder.embed), table) for table in asked]
    plans = [(plan, table) for plan, table in plans if plan.do != "none" and plan.chance >= SURE]
    if not plans:
        return None
    plan, table = max(plans, key=lambda each: each[0].chance)
    try:
        result = carry_out(plan, table)
    except UnsureError:
        return None
    if embedder.read and _is_said_elsewhere(question, near, table, embedder.read):
        return None
    return _show(result.said, [table.rows[row] for row in result.rows])


def _is_said_elsewhere(question: str, near: Sequence[Passage], table: Table, read: Read) -> bool:
    """Whether the answer surely stands in a passage that is no row of the table."""
    ids = {row.passage.id for row in table.rows}
    rows = [passage for passage in near if passage.id in ids]
    others = [passage for passage in near if passage.id not in ids]
    language = find_foreign_language(question, (passage.language for passage in near))
    margin = find_margin(others, question, read, language)
    return margin > SURE_ELSEWHERE and margin > find_margin(rows, question, read, language)


def _show(direct: str, rows: Sequence[Row]) -> WholeAnswer:
    """The result and the rows it rests on: a few of them, and how many more there are."""
    sentences = [Sentence(row.text, (row.passage.id,)) for row in rows[:MAX_ROWS]]
    if left := len(rows[MAX_ROWS:]):
        sentences.append(Sentence(f"And {format_count(left, 'more row')}.", ()))
    passages = tuple(dict.fromkeys(row.passage for row in rows[:MAX_ROWS]))
    return WholeAnswer(Response(tuple(sentences), to_sentence(direct)), passages)
