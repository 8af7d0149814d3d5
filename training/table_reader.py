"""Teach all-MiniLM-L6-v2 to read a question with a table: what is done, with which column, in which rows.

    python -m training.table_reader ../shared/data [-o FILE] [--steps N] [--rate R] [--seed N] [--start FILE]

Tables are read as the program reads them; `training/table_questions.jsonl` has questions with their plans. A part of
the questions is asked of another table that is like their own, and questions of text documents of the nearest table,
too: these do not answer. Each slot is learned by itself (X-SQL: He et al., arXiv:1908.08113). Those of
`benchmarks/tables` are held out.
"""

import csv
import io
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as binary_loss
from torch.nn.functional import cross_entropy

from agent.models.embedding.table_reader import COLUMNS, VALUES, WHOLE, TableText, compose
from agent.models.learned import TABLE_READER
from agent.models.registry import open_embedder
from agent.turn.tables.planning import (
    ACTIONS,
    EMPTY,
    OPERATORS,
    RANKS,
    ROLES,
    Shown,
    choose_tables,
    read_limits,
    show_table,
)
from indexes.documents.reading import parse_document
from indexes.documents.tables.table import Table, find_tables
from indexes.index_vectors import cache_vectors
from indexes.ranking.vectors import Embed
from training.loop import HAS_HALF, Schedule, endless_batches, pad, read_arguments, train
from training.minilm import WIDTH, changes_as_integers, load_integers, mask_of, open_whole

QUESTIONS = Path(__file__).with_name("table_questions.jsonl")
TEXTS = Path(__file__).with_name("own_documents.jsonl")
ELSEWHERE, OF_TEXTS = 0.2, 900  # the share of questions asked of another table, too; and questions of text documents
SHUFFLED = 0.5  # of the questions are read with the columns in another order, another one each time through
SOME_TABLES = 12  # among which the nearest one is looked for
BATCH, BATCHES_SORTED = 16, 8
HEAD_GAIN = 5.0  # heads are learned so many times as fast as the layers
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Item:
    """A question with a table as numbers; of columns and values the numbers count from 0."""

    text: TableText
    do: int
    rank: int
    of: int  # 0: no column, or `IGNORED`
    by: int  # a column, or -1
    operators: list[int]  # of each column
    marks: list[tuple[int, bool]]  # places of values of columns with a condition "=", and whether each is meant


class TableReader(nn.Module):
    """The model and its three heads. The embeddings of words stay as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.base = open_whole()
        self.bert = self.base.bert
        sizes = {WHOLE: len(ACTIONS) + len(RANKS) + 1, COLUMNS: len(ROLES) + len(OPERATORS), VALUES: 1}
        self.heads = nn.ModuleDict({name: nn.Linear(WIDTH, size) for name, size in sizes.items()})
        for head in self.heads.values():
            nn.init.normal_(head.weight, std=0.02 / HEAD_GAIN)

    @torch.no_grad()
    def load(self, file: Path) -> None:
        """Go on from what was learned before, by this or by the reader."""
        tensors = load_integers(self.base, file)
        for name, head in self.heads.items():
            if name in tensors:
                head.weight.copy_(tensors[name][:, :-1] / HEAD_GAIN)
                head.bias.copy_(tensors[name][:, -1] / HEAD_GAIN)

    def tokenize(self, text: str) -> list[int]:
        return self.base.encoder.tokenize(text, with_ends=False)

    def compose(self, question: str, shown: Shown) -> TableText:
        opening, *_, closing = self.base.encoder.tokenize("a")
        return compose(question, shown.blocks, self.tokenize, (opening, closing))

    def states(self, items: Sequence[Item]) -> Tensor:
        ids = pad([item.text.ids for item in items]).long()
        with torch.autocast("cpu", torch.bfloat16, enabled=HAS_HALF):
            states = self.bert(input_ids=ids, attention_mask=mask_of(ids)).last_hidden_state
        found: Tensor = states.float()
        return found

    def loss(self, batch: Sequence[Item]) -> Tensor:
        """The sum over all slots, of a question on average."""
        total = torch.zeros(())
        for states, item in zip(self.states(batch), batch, strict=True):
            whole = self.heads[WHOLE](states[0]) * HEAD_GAIN
            columns = self.heads[COLUMNS](states[item.text.columns]) * HEAD_GAIN
            actions, ranks, bare = whole.split([len(ACTIONS), len(RANKS), 1])
            total = total + _choice_loss(actions, item.do)
            if ACTIONS[item.do] == "none":
                continue
            if ACTIONS[item.do] in ("most", "least"):
                grouped = torch.tensor([float(n == item.by) for n in range(len(columns))])
                total = total + _choice_loss(ranks, item.rank) + binary_loss(columns[:, 1], grouped, reduction="sum")
            if item.of != IGNORED:
                total = total + _choice_loss(torch.cat([bare, columns[:, 0]]), item.of)
            operators = columns[:, len(ROLES) :]
            total = total + cross_entropy(operators, torch.tensor(item.operators), reduction="sum")
            if item.marks:
                odds = self.heads[VALUES](states[[place for place, _ in item.marks]])[:, 0] * HEAD_GAIN
                meant = torch.tensor([float(is_meant) for _, is_meant in item.marks])
                total = total + binary_loss(odds, meant, reduction="sum")
        return total / len(batch)


def _choice_loss(odds: Tensor, right: int) -> Tensor:
    return cross_entropy(odds[None], torch.tensor([right]))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a table, the plan as it was written, and what a right answer has."""

    question: str
    table: Table
    plan: dict[str, Any]
    says: Sequence[str] = ()


def read_tables(file: Path) -> Iterator[list[Asked]]:
    """The questions of each table that the program reads with all its rows."""
    for line in file.read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        if table := read_table(each):
            yield [Asked(one["ask"], table, one["plan"], one["says"]) for one in each["questions"]]


def read_table(written: dict[str, Any]) -> Table | None:
    """A table as it is read from a file with its cells; None where not all its rows are."""
    text = io.StringIO()
    csv.writer(text).writerows([written["columns"], *written["rows"]])
    name = f"{written['name'].replace('/', ' ')}.csv"
    found = find_tables(name, parse_document(Path(name), name, text.getvalue().encode()).passages)
    is_whole = len(found) == 1 and len(found[0].rows) == len(written["rows"])
    return found[0] if is_whole else None


def ask_elsewhere(tables: Sequence[list[Asked]], embed: Embed, order: random.Random) -> Iterator[Asked]:
    """Questions asked of the table that is nearest, among some others that do not answer them."""
    for asked in tables:
        others = [other[0].table for other in tables if other is not asked]
        some = tuple(order.sample(others, SOME_TABLES))
        for one in asked:
            if order.random() < ELSEWHERE:
                near = choose_tables(one.question, some, embed)[0]
                yield Asked(one.question, near, {"do": "none"})
    texts = map(json.loads, TEXTS.read_text(encoding="utf-8").splitlines())
    questions = [one["question"] for text in texts if "language" not in text for one in text["questions"]]
    some = tuple(asked[0].table for asked in order.sample(tables, 3 * SOME_TABLES))
    for question in order.sample(questions, OF_TEXTS):
        yield Asked(question, choose_tables(question, some, embed)[0], {"do": "none"})


def shuffle_columns(shown: Shown, order: random.Random) -> Shown:
    """The same table with its columns in another order."""
    pairs = list(zip(shown.columns, shown.values, strict=True))
    order.shuffle(pairs)
    return Shown(shown.table, [column for column, _ in pairs], [values for _, values in pairs])


def make_item(asked: Asked, shown: Shown, model: TableReader) -> Item | None:
    """A question as numbers; None where its plan names a column that is not shown, or asks for what no plan can say."""
    text = model.compose(asked.question, shown)
    plan, names = asked.plan, [column.name for column in shown.columns]
    wanted = {name for name in (plan.get("of"), plan.get("by"), *(one[0] for one in plan.get("where", []))) if name}
    if not wanted <= set(names):
        return None
    limits = read_limits(asked.question, shown.language)
    do, has_column = plan["do"], "of" in plan
    of = names.index(plan["of"]) + 1 if has_column else 0
    operators, marks = [0] * len(names), list[tuple[int, bool]]()
    for name, operator, value in plan.get("where", []):
        column = names.index(name)
        if operator == "=" and limits.find(shown.columns[column], "in"):
            operator = "in"
        operators[column] = OPERATORS.index("=" if operator == "contains" else operator)
        if operator in ("=", "!=", "contains"):
            meant = [_is_meant(cell, operator, value) for cell in shown.values[column]]
            places = text.values[column]
            if not any(meant[: len(places)]):
                return None  # not shown
            marks += zip(places, meant, strict=False)
    return Item(
        text,
        ACTIONS.index(do),
        RANKS.index(min(plan.get("rank", 1), RANKS[-1])),
        of if has_column or plan.get("by") else IGNORED,
        names.index(plan["by"]) if plan.get("by") else -1,
        operators,
        marks,
    )


def _is_meant(shown: str, operator: str, value: str) -> bool:
    cell, wanted = "" if shown == EMPTY else shown, value.casefold()
    return wanted in cell.casefold() if operator == "contains" else cell.casefold() == wanted


def make_batches(items: Sequence[Item], order: random.Random) -> list[list[Item]]:
    """All questions once, each batch of about one length."""
    shuffled = order.sample(items, len(items))
    size = BATCH * BATCHES_SORTED
    parts = (shuffled[start : start + size] for start in range(0, len(shuffled), size))
    ordered = [sorted(part, key=lambda item: len(item.text.ids)) for part in parts]
    batches = [part[start : start + BATCH] for part in ordered for start in range(0, len(part), BATCH)]
    order.shuffle(batches)
    return batches


def save_table_reader(model: TableReader, path: Path) -> None:
    """Write what was learned: of each weight the change, as 8-bit integers with a scale a row; and the heads."""
    tensors = changes_as_integers(model.base)
    for name, head in model.heads.items():
        tensors[name] = torch.cat([head.weight, head.bias[:, None]], 1).detach().numpy() * np.float32(HEAD_GAIN)
    save_file(tensors, path, metadata={"base": model.base.name})


def make_items(pairs: Iterable[tuple[Asked, Shown]], model: TableReader, order: random.Random) -> list[Item]:
    """Questions as numbers, half of them with the columns of their tables in another order."""
    mixed = ((one, shuffle_columns(shown, order) if order.random() < SHUFFLED else shown) for one, shown in pairs)
    return [item for one, shown in mixed if (item := make_item(one, shown, model))]


def main() -> None:
    asked = read_arguments(__doc__ or "", TABLE_READER, Schedule(1900, 2e-4))
    model, found = TableReader(), open_embedder("minilm")
    assert found
    embedder = cache_vectors(found)  # some tables are compared again and again
    if asked.start:
        model.load(asked.start)
    tables = list(read_tables(QUESTIONS))
    own = [one for table in tables for one in table]
    others = list(ask_elsewhere(tables, embedder.embed, random.Random(asked.seed)))
    others.sort(key=lambda one: one.table.around)  # what is embedded of one serves the next
    pairs = [(one, show_table(one.question, one.table, embedder.embed)) for one in (*own, *others)]
    print(f"{len(tables)} tables, {len(own)} questions, {len(others)} elsewhere", flush=True)
    batches = endless_batches(lambda order: make_batches(make_items(pairs, model, order), order), asked.seed)
    checkpoint = asked.output.with_suffix(".checkpoint")
    train(model, batches, model.loss, Schedule(asked.steps, asked.rate, asked.seed), checkpoint)
    save_table_reader(model, asked.output)
    checkpoint.unlink()


if __name__ == "__main__":
    main()
