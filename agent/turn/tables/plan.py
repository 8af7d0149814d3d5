"""What a question asks of a table, as a plan that a language model writes: which rows, which column, what to do.

The bundled model was taught it (`agent/models/learned/table_planner.md`). It reads the names of the columns and those
of their values that are nearest to the question, and writes JSON; a plan that fits no column is none.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal

import numpy as np
from msgspec import Struct

import prompts
from agent.models.bundled import TABLE_PLANNER
from agent.models.protocol import Conversation, LanguageModel, Task
from indexes.documents.tables.cells import split_words
from indexes.documents.tables.table import Column, Table
from indexes.ranking.vectors import Vectors
from schemas.errors import ModelReplyError
from schemas.records import Message

Embed = Callable[[Sequence[str]], Vectors]
MAX_COLUMNS, MAX_SHOWN, MAX_EMBEDDED = 12, 5, 400  # columns; values of one that are shown; of a table, compared
MAX_VALUE, MAX_PLAN_TOKENS = 40, 120  # characters of a value that is shown; tokens
WORD_SHARED = 0.15  # what a word that the question and a value or table share adds to their cosine
EMPTY = "-"  # shown among the values of a column with empty cells
Operator = Literal["=", "!=", "contains", "<", ">", "<=", ">=", "in", "has", "lacks"]


class Condition(Struct, frozen=True, array_like=True):
    """What a row must have. `in`: a date's year, month or day; `has`: the cell is filled, and does not say no."""

    column: str
    operator: Operator
    value: str


class TablePlan(Struct, frozen=True, omit_defaults=True):
    """What to do with the rows for which all conditions hold."""

    do: Literal["list", "count", "sum", "mean", "most", "least", "none"]
    of: str = ""  # the column whose cells are listed, added or compared
    by: str = ""  # the column by which rows are grouped: the most rows, or the largest sum of `of`
    rank: int = 1  # 2: the second
    where: tuple[Condition, ...] = ()

    @property
    def columns(self) -> set[str]:
        """All that it names."""
        return {name for name in (self.of, self.by, *(one.column for one in self.where)) if name}


def plan_for(question: str, table: Table, llm: LanguageModel, embed: Embed) -> TablePlan | None:
    """The plan of a model that was taught it, or is large; None where it has none, or names other columns."""
    asked = Message("user", compose_plan_prompt(question, table, embed))
    if TABLE_PLANNER in llm.adapters:
        shown, task = Conversation("", (asked,)), Task("table", max_tokens=MAX_PLAN_TOKENS, adapter=TABLE_PLANNER)
    elif llm.writes_answers:
        shown = Conversation(prompts.render("table").instruction, (*prompts.examples("table"), asked))
        task = Task("table", max_tokens=MAX_PLAN_TOKENS)
    else:
        return None
    try:
        plan = llm.ask(shown, task, TablePlan)
    except ModelReplyError:  # it has no end
        return None
    fits = plan.columns <= {column.name for column in table.columns}
    return plan if fits and plan.do != "none" else None


def compose_plan_prompt(question: str, table: Table, embed: Embed) -> str:
    """The table's name, each column with a few of its values, and the question."""
    columns = table.columns[:MAX_COLUMNS]
    shown = _choose_values(question, table, embed)
    lines = (f"{column.name}: {' | '.join(values)}" for column, values in zip(columns, shown, strict=True))
    return "\n".join((f"Table: {table.name}, {len(table.rows)} rows", *lines, f"Q: {question}", "Plan:"))


def _choose_values(question: str, table: Table, embed: Embed) -> list[list[str]]:
    """Of each column the values nearest to the question, in the table's order; of numbers and dates the first ones."""
    columns = [(column, _list_values(column)) for column in table.columns[:MAX_COLUMNS]]
    vectors = _embed_values(tuple(tuple(values) for _, values in columns), embed)
    cosines = vectors @ embed([question])[0]
    said, start, chosen = set(split_words(question)), 0, list[list[str]]()
    for column, values in columns:
        near = cosines[start : start + len(values)] if start + len(values) <= len(cosines) else np.zeros(len(values))
        start += len(values)
        shared = [WORD_SHARED * len(said.intersection(split_words(value))) for value in values]
        order = sorted(range(len(values)), key=lambda n: -(near[n] + shared[n])) if not _is_measured(column) else []
        kept = sorted((order or list(range(len(values))))[:MAX_SHOWN])
        has_empty = len(column.filled) < len(column.cells)
        chosen.append([*(values[n][:MAX_VALUE] for n in kept), *([EMPTY] if has_empty else [])])
    return chosen


def _list_values(column: Column) -> list[str]:
    return list(dict.fromkeys(cell for cell in column.cells if cell))


def _is_measured(column: Column) -> bool:
    """Whether a column has numbers or dates, of which none is nearer to a question than another."""
    return all(column.numbers[row] or column.dates[row] for row in column.filled)


@lru_cache(maxsize=32)
def _embed_values(values: tuple[tuple[str, ...], ...], embed: Embed) -> Vectors:
    return embed(list(chain.from_iterable(values))[:MAX_EMBEDDED])


@lru_cache(maxsize=2)  # of the folder that is asked
def _embed_tables(tables: tuple[Table, ...], embed: Embed) -> Vectors:
    return embed([f"{table.name}: {', '.join(column.plain_name for column in table.columns)}" for table in tables])


def choose_table(question: str, tables: tuple[Table, ...], embed: Embed) -> Table:
    """The table whose name, columns and values are nearest to a question, by meaning and by words."""
    said = set(split_words(question))
    shared = [len(said & _words_of(table)) for table in tables]
    near = _embed_tables(tables, embed) @ embed([question])[0] + WORD_SHARED * np.array(shared)
    return tables[int(near.argmax())]


@lru_cache(maxsize=1024)
def _words_of(table: Table) -> frozenset[str]:
    """The stems of its name, its columns, and its values."""
    cells = chain.from_iterable(row.cells.values() for row in table.rows)
    return frozenset(split_words(" ".join((table.name, table.header, *cells))))
