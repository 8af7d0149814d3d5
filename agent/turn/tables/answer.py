"""Answers that are computed over all rows of a table: "780.00 + 312.00 = 1,092.00 EUR", "7 of 22 rows".

Only what is sure is concluded: where a second table has an answer of its own, or it is not sure what a table says,
there is none, and the question is answered from passages like any other.
"""

from collections.abc import Sequence
from dataclasses import replace

from agent.turn.question_words import find_other
from agent.turn.quotes import to_sentence
from agent.turn.tables.cells import split_words
from agent.turn.tables.columns import HEADER_WORDS
from agent.turn.tables.counting import (
    add_money,
    add_named,
    count_rows,
    find_extreme,
    list_rows,
)
from agent.turn.tables.matching import Item, Matched, TableWords, match_words, says_name, split_question
from agent.turn.tables.question import LANGUAGES, TableQuestion, read_table_question
from agent.turn.tables.rows import Table, list_tables
from agent.turn.tables.selection import Selected, UnsureError, select_rows
from indexes.documents.whole_documents import WholeDocuments
from schemas.records import Response, Sentence, WholeAnswer

MAX_ROWS = 5  # that are shown
_COMPUTE = {
    "count": count_rows,
    "list": list_rows,
    "money": add_money,
    "amount": add_named,
    "sum": add_named,
    "most": find_extreme,
    "least": find_extreme,
    "newest": find_extreme,
    "oldest": find_extreme,
}


def compute_over_tables(utterance: str, documents: WholeDocuments, earlier: Sequence[str] = ()) -> WholeAnswer | None:
    """The answer that a table of a folder has as a whole; None where none is sure. `earlier`: what was asked before."""
    question = read_table_question(utterance) or continue_question(utterance, earlier, documents)
    if question is None:
        return None
    try:
        tables = list_tables(documents)
        own = [table for table in tables if table.language == question.language]
        asked = _find_asked(question, own) or _find_asked(question, tables)
        found = [computed for words_of, matched in asked if (computed := _compute(question, matched, words_of))]
    except UnsureError:
        return None
    told = {(selected.direct, tuple(row.text for row in selected.rows)) for selected in found}
    return _show(found[0]) if len(told) == 1 else None


def _show(selected: Selected) -> WholeAnswer:
    """The result and the rows it rests on: a few of them, and how many more there are."""
    shown, left = selected.rows[:MAX_ROWS], len(selected.rows[MAX_ROWS:])
    sentences = [Sentence(row.text, (row.passage.id,)) for row in shown]
    if left:
        one, several = LANGUAGES[selected.question.language].more_rows
        sentences.append(Sentence((one if left == 1 else several).format(left), ()))
    passages = tuple(dict.fromkeys(row.passage for row in shown))
    return WholeAnswer(Response(tuple(sentences), to_sentence(selected.direct)), passages)


def _find_asked(question: TableQuestion, tables: Sequence[Table]) -> list[tuple[TableWords, Matched]]:
    """The tables that account for all words of a question: those that it names, where it names some.

    Raises `UnsureError` where it may as well ask another for what is only a part of its cells.
    """
    words = split_question(question.rest)
    found, partly = list[tuple[TableWords, Matched]](), list[TableWords]()
    for words_of in map(TableWords, tables):
        matched, unknown = match_words(words, words_of, question.language)
        is_anchored = matched and matched.of_kind("name", "column", "value", "has", "lacks")
        if matched and (is_anchored or question.aim == "money"):
            found.append((words_of, matched))
        elif unknown and set(split_words(" ".join(unknown))) <= words_of.cells:  # a part of a cell may be meant
            partly.append(words_of)
    named = [pair for pair in found if says_name(words, pair[0])]
    if any(says_name(words, words_of) or not named for words_of in partly):
        raise UnsureError("whether a part of a cell is meant")
    return named or found


def _compute(question: TableQuestion, matched: Matched, words_of: TableWords) -> Selected | None:
    """What a table says; None where no row is asked for. Raises `UnsureError` where it is not sure."""
    table, asked = words_of.table, frozenset(split_words(question.rest))
    are_named = any((HEADER_WORDS | asked) & set(split_words(name)) for name in table.columns)  # no first row as header
    if table.is_doubtful or not are_named:
        raise UnsureError("which rows and columns there are")
    rows = select_rows(matched, words_of)
    return _COMPUTE[question.aim](Selected(question, matched, table, rows)) if rows else None


def continue_question(utterance: str, earlier: Sequence[str], documents: WholeDocuments) -> TableQuestion | None:
    """The question before with another value or period; None where it is none of a table, or of several."""
    other = find_other(utterance)
    if not other or not earlier:
        return None
    before = read_table_question(earlier[-1]) or continue_question(earlier[-1], earlier[:-1], documents)
    if before is None:
        return None
    tables = map(TableWords, list_tables(documents))
    found = {rest for words_of in tables if (rest := _exchange(before, other, words_of))}
    return replace(before, rest=found.pop()) if len(found) == 1 else None


def _exchange(question: TableQuestion, other: str, words_of: TableWords) -> str:
    """The words of a question with other values or another period; empty where a table does not have them all."""
    before, _ = match_words(split_question(question.rest), words_of, question.language)
    after, _ = match_words(split_question(other), words_of, question.language)
    kinds = {item.kind for item in after.items} - {"neutral"} if after else set()
    if before is None or after is None or not kinds or not kinds <= {"value", "period"}:
        return ""
    kept, at = list[str](), 0
    for item in before.items:
        if not any(_excludes(new, item) for new in after.items):
            kept += before.words[at : at + item.size]
        at += item.size
    return " ".join((*kept, *after.words))


def _excludes(new: Item, old: Item) -> bool:
    """Whether a row cannot be asked for by both: two values of a column, two periods."""
    return new.kind == old.kind and (new.kind == "period" or not set(new.columns).isdisjoint(old.columns))
