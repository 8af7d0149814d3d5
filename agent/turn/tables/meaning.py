"""What a word of a question means for a table, where its stem alone does not tell: the warranty is the "Guarantee".

By the cosine of the word with the names of columns, the table's own, and the values that are words.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from indexes.documents.tables.cells import split_words
from indexes.documents.tables.table import Column, Table
from indexes.ranking.vectors import Vectors

Embed = Callable[[Sequence[str]], Vectors]
MEANT, MEANT_VALUE = 0.43, 0.55  # cosines from which a word stands for a column or the table, and for a value
WORD_SHARED = 0.1  # what a word that the question and a table share adds to their cosine
MAX_VALUES, MAX_VALUE_WORDS = 300, 3  # of a table that are compared, and of one value


@lru_cache(maxsize=64)
def _embed_vocabulary(table: Table, embed: Embed) -> tuple[list[tuple[Column | None, str]], Vectors]:
    """What a word may stand for: the table (no column), a column (no value), or a value of a column."""
    meant: list[tuple[Column | None, str]] = [(None, ""), *((column, "") for column in table.columns)]
    worded = [one for one in table.columns if not any((*one.numbers, *one.dates)) and "yes or no" not in one.kinds]
    values = ((column, cell) for column in worded for cell in dict.fromkeys(column.cells) if cell)
    meant += [pair for pair in values if len(pair[1].split()) <= MAX_VALUE_WORDS][:MAX_VALUES]
    name = re.sub("[_-]", " ", table.name)
    return meant, embed([value or (column.plain_name if column else name) for column, value in meant])


def find_meant(word: str, table: Table, embed: Embed) -> tuple[Column | None, str] | None:
    """The table, column or value that a word stands for; None where it is near none."""
    meant, vectors = _embed_vocabulary(table, embed)
    cosines = vectors @ embed([word])[0]
    needs_more = (value or (column and column.tells_yes_from_no) for column, value in meant)
    near = cosines - [MEANT_VALUE if needed else MEANT for needed in needs_more]
    best = int(near.argmax())
    return meant[best] if near[best] >= 0 else None


@lru_cache(maxsize=2)  # of the folder that is asked
def _embed_tables(tables: tuple[Table, ...], embed: Embed) -> Vectors:
    return embed([f"{table.name}: {', '.join(column.plain_name for column in table.columns)}" for table in tables])


def choose_table(asked: str, tables: tuple[Table, ...], embed: Embed) -> list[Table]:
    """The table whose name and columns are nearest to what is asked, by meaning and by words."""
    if not tables:
        return []
    said = [len(set(split_words(asked)) & set(split_words(f"{table.name} {table.header}"))) for table in tables]
    near = _embed_tables(tables, embed) @ embed([asked])[0] + WORD_SHARED * np.array(said)
    return [tables[int(near.argmax())]]


def choose_column(asked: str, columns: Sequence[Column], embed: Embed) -> list[Column]:
    """The column whose name is nearest to what is asked for."""
    if len(columns) < 2:
        return list(columns)
    vectors = embed([asked, *(column.plain_name for column in columns)])
    return [columns[int((vectors[1:] @ vectors[0]).argmax())]]
