"""Answers that are computed over all rows of a table: "780.00 + 312.00 = 1,092.00 EUR", "7 of 22 rows".

Only what is sure is concluded: where a second table has an answer of its own, or it is not sure what a table says,
there is none, and the question is answered from passages like any other.
"""

from collections.abc import Sequence
from dataclasses import replace

from agent.turn.question_words import find_other
from agent.turn.quotes import to_sentence
from agent.turn.tables.cells import ROLES, split_words
from agent.turn.tables.computing import UnsureError, compute
from agent.turn.tables.question import (
    PHRASES,
    Matched,
    TableQuestion,
    match_words,
    read_table_question,
    says_name,
    split_question,
)
from agent.turn.tables.table import Row, Table, list_tables
from indexes.documents.whole_documents import WholeDocuments
from schemas.records import Response, Sentence, WholeAnswer

MAX_ROWS = 5  # that are shown


def compute_over_tables(utterance: str, documents: WholeDocuments, earlier: Sequence[str] = ()) -> WholeAnswer | None:
    """The answer that a table of a folder has as a whole; None where none is sure. `earlier`: what was asked before."""
    question = read_table_question(utterance) or _continue_question(utterance, earlier)
    if question is None:
        return None
    try:
        tables = list_tables(documents)
        own = [table for table in tables if table.rows[0].passage.language == question.language]
        asked = _find_asked(question, own) or _find_asked(question, tables)
        found = [computed for matched in asked if (computed := compute(matched))]
    except UnsureError:
        return None
    told = {(direct, tuple(row.text for row in rows)) for direct, rows in found}
    return _show(*found[0], question.language) if len(told) == 1 else None


def _continue_question(utterance: str, earlier: Sequence[str]) -> TableQuestion | None:
    """The question before with another value or period: "And in May?"; None where it asked for no table."""
    other = find_other(utterance)
    if not other or not earlier:
        return None
    before = read_table_question(earlier[-1]) or _continue_question(earlier[-1], earlier[:-1])
    return replace(before, rest=f"{before.rest} {other}", is_continued=True) if before else None


def _find_asked(question: TableQuestion, tables: Sequence[Table]) -> list[Matched]:
    """What a question is to the tables that account for all its words: to those that it names, where it names some.

    Raises `UnsureError` where it may as well ask another for what is only a part of its cells, or where it is not sure
    which rows and columns one has.
    """
    words, asked = split_question(question.rest), list[Matched]()
    partly = list[Table]()
    for table in tables:
        matched, unknown = match_words(question, table)
        if matched and (matched.of_kind("name", "column", "value", "has", "lacks") or question.aim == "money"):
            asked.append(matched)
        elif unknown and set(split_words(" ".join(unknown))) <= {
            stem for column in table.columns for key in column.keys for stem in key
        }:  # a part of a cell may be meant
            partly.append(table)
    named = [matched for matched in asked if says_name(words, matched.table)]
    if any(says_name(words, table) or not named for table in partly):
        raise UnsureError("whether a part of a cell is meant")
    for matched in named or asked:
        is_named = any(column.kinds & ROLES.keys() or column.stems & question.stems for column in matched.table.columns)
        if matched.table.is_doubtful or not is_named:  # a first row that was taken for the header
            raise UnsureError("which rows and columns there are")
    return named or asked


def _show(direct: str, rows: Sequence[Row], language: str) -> WholeAnswer:
    """The result and the rows it rests on: a few of them, and how many more there are."""
    sentences = [Sentence(row.text, (row.passage.id,)) for row in rows[:MAX_ROWS]]
    if left := len(rows[MAX_ROWS:]):
        one, several = PHRASES[language]["more_rows"]
        sentences.append(Sentence((one if left == 1 else several).format(left), ()))
    passages = tuple(dict.fromkeys(row.passage for row in rows[:MAX_ROWS]))
    return WholeAnswer(Response(tuple(sentences), to_sentence(direct)), passages)
