"""Answers that are computed over all rows of a table: "780.00 + 312.00 = 1,092.00 EUR", "7 of 22 rows".

Only what is sure is concluded: where a second table has an answer of its own, or it is not sure what a table says,
there is none, and the question is answered from passages like any other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agent.turn.question_words import find_other
from agent.turn.quotes import to_sentence
from agent.turn.tables.cells import split_words
from agent.turn.tables.columns import HEADER_WORDS
from agent.turn.tables.counting import (
    add_amounts,
    add_money,
    add_named,
    count_rows,
    find_extreme,
    list_rows,
)
from agent.turn.tables.matching import Item, Matched, TableWords, match_words, says_name, split_question
from agent.turn.tables.question import LANGUAGES, TableQuestion, read_table_question
from agent.turn.tables.rows import Table, are_columns_named, list_tables
from agent.turn.tables.selection import Selected, UnsureError, select_rows
from indexes.documents.whole_documents import WholeDocuments
from schemas.records import Response, Sentence, WholeAnswer

MAX_ROWS = 5  # that are shown
_COMPUTE = {
    "count": count_rows,
    "list": list_rows,
    "money": add_money,
    "amount": add_amounts,
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
        if matched and _is_anchored(matched, question):
            found.append((words_of, matched))
        elif unknown and _are_in_cells(unknown, words_of):
            partly.append(words_of)
    named = [pair for pair in found if says_name(words, pair[0])]
    if any(says_name(words, words_of) or not named for words_of in partly):
        raise UnsureError("whether a part of a cell is meant")
    return named or found


def _is_anchored(matched: Matched, question: TableQuestion) -> bool:
    """Whether a question has a word of the table's name, a column or a value."""
    return bool(matched.of_kind("name", "column", "value", "has", "lacks")) or question.aim == "money"


def _are_in_cells(unknown: Sequence[str], words_of: TableWords) -> bool:
    """Whether the words that a table does not account for all stand in its cells, as parts of them."""
    held = {stem for row in words_of.table.rows for cell in row.cells.values() for stem in split_words(cell)}
    return set(split_words(" ".join(unknown))) <= held


def _compute(question: TableQuestion, matched: Matched, words_of: TableWords) -> Selected | None:
    """What a table says; None where no row is asked for. Raises `UnsureError` where it is not sure."""
    table, asked = words_of.table, frozenset(split_words(question.rest))
    if table.is_doubtful or not are_columns_named(table, HEADER_WORDS | asked):
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
    if before is None or after is None or not _is_exchangeable(after):
        return ""
    kept = [words for item, words in _list_items(before) if not any(_excludes(new, item) for new in after.items)]
    return " ".join(word for words in (*kept, after.words) for word in words)


def _is_exchangeable(matched: Matched) -> bool:
    kinds = {item.kind for item in matched.items} - {"neutral"}
    return bool(kinds) and kinds <= {"value", "period"}


def _excludes(new: Item, old: Item) -> bool:
    """Whether a row cannot be asked for by both: two values of a column, two periods."""
    if new.kind != old.kind:
        return False
    return new.kind == "period" or (new.kind == "value" and not set(new.columns).isdisjoint(old.columns))


def _list_items(matched: Matched) -> Iterator[tuple[Item, tuple[str, ...]]]:
    """Each item with its words."""
    at = 0
    for item in matched.items:
        yield item, matched.words[at : at + item.size]
        at += item.size
