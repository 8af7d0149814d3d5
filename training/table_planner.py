"""Teach SmolLM2-135M to write what a question asks of a table as a plan: a LoRA adapter that llama.cpp loads.

    python -m training.table_planner ../shared/data [-o FILE] [--steps N] [--seed N]

Tables are read as the program reads them; each question is asked of its own table, and some of another one as well,
which does not answer. Every tenth table is held out.
"""

import csv
import io
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agent.models.bundled import ADAPTERS, TABLE_PLANNER
from agent.models.registry import open_embedder
from agent.turn.tables.plan import Embed, TablePlan, compose_plan_prompt
from indexes.documents.reading import parse_document
from indexes.documents.tables.table import Table, find_tables
from training.loop import Schedule, read_arguments
from training.smollm2 import Item, TaughtSmolLM2

TABLES = Path(__file__).with_name("table_questions.jsonl")
HELD_OUT = 10
MAX_TOKENS = 480  # of a prompt; the end is kept
ELSEWHERE = 0.2  # of the questions are asked of another table, too


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a table, and the plan."""

    question: str
    table: Table
    plan: TablePlan


def read_tables(file: Path, *, held_out: bool) -> Iterator[list[Asked]]:
    """The questions of each table, as far as the program reads it with the columns that their plans name."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
        each = json.loads(line)
        table = read_table(each)
        if table and (number % HELD_OUT == 0) == held_out:
            plans = [(asked["question"], msgspec.convert(asked["plan"], TablePlan)) for asked in each["questions"]]
            yield [Asked(ask, table, plan) for ask, plan in plans if plan.columns <= {c.name for c in table.columns}]


def read_table(written: dict[str, Any]) -> Table | None:
    """A table as it is read from a file with its cells; None where not all its rows are."""
    text = io.StringIO()
    csv.writer(text).writerows([written["columns"], *written["rows"]])
    name = f"{written['name'].replace('/', ' ')}.csv"
    found = find_tables(name, parse_document(Path(name), name, text.getvalue().encode()).passages)
    return found[0] if len(found) == 1 and len(found[0].rows) == len(written["rows"]) else None


def ask_elsewhere(tables: Sequence[list[Asked]], order: random.Random) -> Iterator[Asked]:
    """Questions asked of a table that is about something else."""
    for asked in tables:
        others = [other[0].table for other in tables if other and other is not asked]
        for one in asked:
            if order.random() < ELSEWHERE:
                yield Asked(one.question, order.choice(others), TablePlan("none"))


def make_items(model: TaughtSmolLM2, asked: Sequence[Asked], embed: Embed) -> list[Item]:
    """Questions as tokens."""
    return [
        model.make_item(
            compose_plan_prompt(one.question, one.table, embed), msgspec.json.encode(one.plan).decode(), MAX_TOKENS
        )
        for one in asked
    ]


def main() -> None:
    asked = read_arguments(__doc__ or "", ADAPTERS[TABLE_PLANNER], Schedule(900, 5e-4))
    model, embedder = TaughtSmolLM2(), open_embedder("minilm")
    assert embedder
    tables = list(read_tables(TABLES, held_out=False))
    own = [one for table in tables for one in table]
    items = make_items(model, [*own, *ask_elsewhere(tables, random.Random(asked.seed))], embedder.embed)
    print(f"{len(tables)} tables, {len(items)} questions", flush=True)
    model.teach(lambda _order: items, Schedule(asked.steps, asked.rate, asked.seed), asked.output)


if __name__ == "__main__":
    main()
