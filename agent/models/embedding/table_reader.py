"""all-MiniLM-L6-v2 as it was taught to read a question with a table: what is asked of which columns and values.

All of it is one text, `[CLS] question [SEP] name [SEP] column : value | value [SEP] column ...`. The first token tells
what is done, the first one of a column's name what that is to the question, the first one of a value whether it is
meant (`training/table_reader.py`; `agent/turn/tables/planning.py` says what each number stands for).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from agent.models.embedding.llama_cpp import MAX_TOKENS, LlamaCppEncoder, add_scaled, open_taught
from agent.models.embedding.minilm import BASE, convert_to_gguf
from agent.models.learned import TABLE_READER
from indexes.ranking.vectors import ReadTable, TableReadout, Vectors

WHOLE, COLUMNS, VALUES = "whole", "column", "value"  # what tells by the state of a token; the last column is a constant
QUESTION_TOKENS, NAME_TOKENS, VALUE_TOKENS = 48, 10, 8  # that are read of each
UNREAD = np.float32(-1e4)  # of a value for which there was no room
Tokenize = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class TableText:
    """A question and a table as tokens, and where columns and values begin."""

    ids: list[int]
    columns: list[int]
    values: list[list[int]]


def compose(question: str, blocks: Sequence[Sequence[str]], tokenize: Tokenize, ends: tuple[int, int]) -> TableText:
    """At most `MAX_TOKENS` tokens: as many values of each column as there is room for. `ends`: [CLS] and [SEP]."""
    (name,), *columns = ([tokenize(text) for text in block] for block in blocks)
    colon, bar = tokenize(":"), tokenize("|")
    asked, shown = tokenize(question)[-QUESTION_TOKENS:], max(map(len, columns))
    while True:
        ids = [ends[0], *asked, ends[1], *name[:NAME_TOKENS], ends[1]]
        text = TableText(ids, [], [])
        for own, *values in columns:
            text.columns.append(len(ids))
            text.values.append([])
            ids += own[:NAME_TOKENS]
            for value in values[:shown]:
                ids += bar if text.values[-1] else colon
                text.values[-1].append(len(ids))
                ids += value[:VALUE_TOKENS]
            ids.append(ends[1])
        if len(ids) <= MAX_TOKENS or not shown:
            return text
        shown -= 1


def open_table_reader(weights: Path, threads: int) -> ReadTable:
    """The reader of tables over the weights of all-MiniLM-L6-v2. Errors: those of `open_taught`."""
    convert = partial(convert_to_gguf, weights)
    encoder, learned = open_taught(convert, BASE, threads, TABLE_READER, add_scaled)
    return partial(_read_table, encoder, [learned[name] for name in (WHOLE, COLUMNS, VALUES)])


def _read_table(
    encoder: LlamaCppEncoder, heads: Sequence[Vectors], question: str, blocks: Sequence[Sequence[str]]
) -> TableReadout:
    opening, *_, closing = encoder.tokenize("a")
    text = compose(question, blocks, partial(encoder.tokenize, with_ends=False), (opening, closing))
    states = encoder.compute_states(text.ids[:MAX_TOKENS])
    whole, columns, values = (states @ head[:, :-1].T + head[:, -1] for head in heads)
    marks = []
    for block, places in zip(blocks[1:], text.values, strict=True):
        own = np.full(len(block) - 1, UNREAD)
        own[: len(places)] = values[places, 0]
        marks.append(own)
    return TableReadout(whole[0], columns[text.columns], marks)
