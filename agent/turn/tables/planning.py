"""What a question asks of a table, as a plan.

Learned (`training/table_reader.py`): a model reads the question with the names of the columns and those of their values
that are nearest to it, and tells of each column what it is to the question, and of each value whether it is meant (a
sketch of slots: Xu et al., arXiv:1711.04436; X-SQL: He et al., arXiv:1908.08113). A column is never used in a way that
its cells do not allow: text is not added up.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from scipy.special import expit, softmax

from agent.turn.tables.plan import Condition, TablePlan, find_rows, says_no
from indexes.documents.tables.cells import STOP_STEMS, find_figures, find_periods, read_dates, read_period, split_words
from indexes.documents.tables.table import Column, Table
from indexes.ranking.vectors import Embed, ReadTable, TableReadout, Vectors

MAX_COLUMNS, MAX_SHOWN, MAX_EMBEDDED = 12, 6, 400  # columns read; values shown of each; values of a table embedded
MAX_TABLES = 2  # of which a question may be
MAX_VALUE = 40  # characters of a value that is embedded
WORD_SHARED = 0.15  # what a word that the question and a value or table share adds to their cosine
EMPTY = "-"  # shown among the values of a column with empty cells
ACTIONS = ("none", "list", "count", "sum", "mean", "most", "least")  # what is told of the whole question,
RANKS = (1, 2, 3)  # and which of them is meant
ROLES = ("of", "by")  # what is told of each column: that it is listed, added or compared; that rows are grouped by it;
OPERATORS = ("", "=", "has", "lacks", "in", ">", "<", ">=", "<=", "!=")  # and the condition on it
LIMITED = OPERATORS[4:9]  # those that hold a cell against what the question says


@dataclass(frozen=True, slots=True)
class Shown:
    """A table as the model reads it: of each column the name, and some of its values."""

    table: Table
    columns: Sequence[Column]
    values: Sequence[Sequence[str]]

    @property
    def language(self) -> str:
        return self.table.rows[0].passage.language

    @property
    def blocks(self) -> list[list[str]]:
        """The table's name, then each column with its values."""
        pairs = zip(self.columns, self.values, strict=True)
        return [[re.sub("[_-]", " ", self.table.name)], *([column.name, *values] for column, values in pairs)]


def plan_for(question: str, table: Table, read_table: ReadTable, embed: Embed) -> TablePlan:
    """The likeliest plan; its action is "none" where the table does not seem to be asked."""
    shown = show_table(question, table, embed)
    found = read_table(question, shown.blocks)
    return choose_plan(question, shown, found) if found else TablePlan("none")


def show_table(question: str, table: Table, embed: Embed) -> Shown:
    """Of each column the values nearest to the question, the nearest first; of numbers and dates those that it says."""
    columns = table.columns[:MAX_COLUMNS]
    listed = [list(dict.fromkeys(cell for cell in column.cells if cell)) for column in columns]
    worded = [n for n, column in enumerate(columns) if not _is_measured(column)]
    most = MAX_EMBEDDED // max(1, len(worded))
    embedded = _embed_values(tuple(tuple(listed[n][:most]) for n in worded), embed)
    vector = embed([question])[0]
    near = dict(zip(worded, (each @ vector for each in embedded), strict=True))
    said = set(split_words(question)) - STOP_STEMS
    periods = [period for text in find_periods(question) if (period := read_period(text))]
    chosen = []
    for n, (column, values) in enumerate(zip(columns, listed, strict=True)):
        shared = [len(said.intersection(split_words(value))) for value in values]
        if column.is_dated:
            dates = zip(shared, read_dates(values), strict=True)
            shared = [count + any(date and period.holds(date) for period in periods) for count, date in dates]
        scores = WORD_SHARED * np.array(shared, float)
        cosines = near.get(n, scores[:0])
        scores[: len(cosines)] += cosines
        kept = np.argsort(-scores, kind="stable")[: MAX_SHOWN if n in near or any(shared) else 2]
        has_empty = len(column.filled) < len(column.cells) and EMPTY not in values
        chosen.append([*(values[place] for place in kept), *([EMPTY] if has_empty else [])])
    return Shown(table, columns, chosen)


def _is_measured(column: Column) -> bool:
    """Whether a column has numbers or dates alone."""
    return all(column.numbers[row] or column.dates[row] for row in column.filled)


@lru_cache(maxsize=32)
def _embed_values(columns: tuple[tuple[str, ...], ...], embed: Embed) -> list[Vectors]:
    """The vectors of the values of each column."""
    vectors = iter(embed([value[:MAX_VALUE] for value in chain.from_iterable(columns)]))
    return [np.array([next(vectors) for _ in values]) for values in columns]


def choose_tables(question: str, tables: Sequence[Table], embed: Embed) -> list[Table]:
    """The tables whose names, columns and values are nearest to a question, by meaning and by words."""
    if not tables:
        return []
    names = [f"{table.name}: {', '.join(column.plain_name for column in table.columns)}" for table in tables]
    said = set(split_words(question))
    shared = [len(said & table.words) for table in tables]
    near = embed(names) @ embed([question])[0] + WORD_SHARED * np.array(shared)
    return [tables[n] for n in np.argsort(-near, kind="stable")[:MAX_TABLES]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a question says that cells can be held against."""

    periods: frozenset[str]
    figures: frozenset[str]

    def find(self, column: Column, operator: str) -> str:
        """The one limit or period for a column; "" where there is none, or several."""
        found: set[str] = set()
        if column.is_dated or operator == "in":
            found |= self.periods if all(column.dates[row] for row in column.filled) else set()
        elif any(column.measures):
            in_periods = set(chain.from_iterable(re.findall(r"\d+", period) for period in self.periods))
            own = {figure for figure in self.figures if (":" in figure) == column.has_times}
            found = own if len(own) == 1 else own - in_periods
        return next(iter(found)) if len(found) == 1 else ""


def read_limits(question: str, language: str) -> Limits:
    return Limits(frozenset(find_periods(question)), frozenset(find_figures(question, language)))


def choose_plan(question: str, shown: Shown, found: TableReadout) -> TablePlan:
    """The likeliest action, columns and values, each by itself, of those that can be."""
    actions, ranks, (bare,) = np.split(found.whole, [len(ACTIONS), len(ACTIONS) + len(RANKS)])
    action, chance = _choose(actions)
    do, by, rank = ACTIONS[action], None, 1
    if do in ("most", "least"):
        place, sure = _choose(ranks)
        grouped = expit(found.columns[:, ROLES.index("by")])
        best = int(grouped.argmax())
        by, rank = (shown.columns[best] if grouped[best] > 0.5 else None), RANKS[place]
        chance *= sure * float(max(grouped[best], 1 - grouped[best]))
    of, sure = _choose_column(do, bool(by), shown, np.array([bare, *found.columns[:, ROLES.index("of")]]))
    limits = read_limits(question, shown.language)
    columns = zip(shown.columns, shown.values, found.columns[:, len(ROLES) :], found.values, strict=True)
    told = [_choose_condition(question, limits, *each) for each in columns]
    where, all_hold = _keep_possible(told, shown.table)
    return TablePlan(do, of, by, rank, where, chance * sure * all_hold)


def _choose_column(do: str, is_grouped: bool, shown: Shown, odds: Vectors) -> tuple[Column | None, float]:
    """What is listed, added or compared; None where rows are counted. `odds`: of none, then of each column."""
    if do in ("none", "count"):
        return None, 1.0
    adds = do in ("sum", "mean") or is_grouped
    can_be = [do == "list" or (_is_added(column) if adds else any(column.measures)) for column in shown.columns]
    if not (is_grouped or any(can_be)):
        return None, 0.0
    chances = softmax(odds.astype(np.float64))  # what cannot be keeps its share
    best = int(np.where([is_grouped, *can_be], chances, -1).argmax())
    return (shown.columns[best - 1] if best else None), float(chances[best])


def _is_added(column: Column) -> bool:
    """Whether its cells, without those that say that there is none, are numbers of one unit."""
    return bool(column.read_numbers([row for row in column.filled if not says_no(column.cells[row])]))


@dataclass(frozen=True, slots=True)
class Told:
    """A column's condition, if it has one, how likely it is, and how likely none is."""

    condition: Condition | None
    chance: float
    chance_of_none: float


def _choose_condition(
    question: str, limits: Limits, column: Column, values: Sequence[str], odds: Vectors, marks: Vectors
) -> Told:
    """What is asked of a column's cells. What they cannot be held against keeps its share of the chance."""
    limit = {operator: limits.find(column, operator) for operator in LIMITED}
    can_lack = column.tells_yes_from_no or len(column.filled) < len(column.cells)
    can_be = {"": True} | dict.fromkeys(("=", "!="), bool(values)) | dict.fromkeys(("has", "lacks"), can_lack)
    can_be |= {operator: bool(text) for operator, text in limit.items()}
    chances = softmax(odds.astype(np.float64))
    best = int(np.where([can_be[operator] for operator in OPERATORS], chances, -1).argmax())
    operator, chance, none = OPERATORS[best], float(chances[best]), float(chances[0])
    if operator in ("=", "!="):
        meant = expit(marks.astype(np.float64))
        chosen = [value for value, mark in zip(values, meant, strict=True) if mark > 0.5]
        chance *= float(np.prod(np.maximum(meant, 1 - meant))) if chosen else float(meant.max())
        chosen = _add_alike(question, column, values, chosen or [values[int(meant.argmax())]])
        return Told(Condition(column, operator, tuple(chosen)), chance, none)
    condition = Condition(column, operator, (limit[operator],) if operator in limit else ()) if operator else None
    return Told(condition, chance, none)


def _add_alike(question: str, column: Column, shown: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Values that are meant, and where several are by a word of the question, those with it that were not shown."""
    said = set(split_words(question)) - STOP_STEMS if len(chosen) > 1 else set()
    shared = said.intersection(*map(split_words, chosen))
    others = (cell for cell in column.cells if cell not in shown and shared.intersection(split_words(cell)))
    return list(dict.fromkeys((*chosen, *others, *([""] if EMPTY in chosen else []))))


def _keep_possible(told: Sequence[Told], table: Table) -> tuple[tuple[Condition, ...], float]:
    """The conditions that some row has all of, without the least sure ones where none has; and how likely that is."""
    chance = float(np.prod([each.chance for each in told if not each.condition]))
    kept = sorted((each for each in told if each.condition), key=lambda each: -each.chance)
    where = [each.condition for each in kept if each.condition]
    while where and not find_rows(where, table):
        where.pop()
        chance *= kept.pop().chance_of_none
    return tuple(where), chance * float(np.prod([each.chance for each in kept]))


def _choose(odds: Vectors) -> tuple[int, float]:
    """The likeliest of some, and its chance."""
    chances = softmax(odds.astype(np.float64))
    return int(chances.argmax()), float(chances.max())
