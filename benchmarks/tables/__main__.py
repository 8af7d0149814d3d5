"""What is computed over tables that others made: `python -m benchmarks.tables [--show]`.

44 tables with 966 questions by others (language models) who had not seen the program; none was learned from. `says` is
what a right answer has, empty where the table does not tell; `plan` says which rows and columns it rests on, and what
is done with them.
Each is asked of the folder of its own table, without a search. Where cells are asked for, the rows shown count as well.
"""

import argparse
import csv
import json
import re
import tempfile
from collections import Counter, defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from agent.models.registry import open_embedder
from agent.turn.tables.answer import compute_over_tables
from indexes.documents.collection import WholeDocuments
from indexes.documents.document_index import open_documents
from indexes.documents.tables.table import list_tables

QUESTIONS = Path(__file__).with_name("questions.jsonl")


def read_documents(table: dict[str, Any], folder: Path) -> WholeDocuments:
    """A folder with the one table."""
    file = folder / "docs" / f"{table['name'].replace('/', ' ')}.csv"
    file.parent.mkdir()
    with file.open("w", newline="", encoding="utf-8") as text:
        csv.writer(text).writerows([table["columns"], *table["rows"]])
    return WholeDocuments(open_documents(file.parent, folder, None, lambda *_: nullcontext(lambda _done: None)).index)


def is_right(said: str, says: list[str]) -> bool:
    """Whether a result has all that a right one has, each not as a part of a longer word or number."""
    folded = said.casefold()
    return bool(says) and all(re.search(rf"(?<![\w.,]){re.escape(each.casefold())}(?![\w])", folded) for each in says)


def main() -> None:
    """Ask, and print what came of it, by what the plans do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="what was wrong, too")
    given = parser.parse_args()
    embedder = open_embedder("minilm")
    assert embedder
    told = defaultdict[str, Counter[str]](Counter)
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        table = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            documents = read_documents(table, Path(folder))
            near = [row.passage for found in list_tables(documents) for row in found.rows]
            for asked in table["questions"]:
                found = compute_over_tables(asked["ask"], near, documents, embedder)
                said = found.response.direct if found else ""
                shown = f"{said} {found.response.text}" if found and asked["plan"]["do"] == "list" else said
                fits = is_right(shown, asked["says"])
                verdict = "right" if fits else "wrong" if said else "left"
                told[asked["plan"]["do"]][verdict] += 1
                if given.show and said and not fits:
                    print(f"{asked['ask']} | {said} | {', '.join(asked['says'])}")
    told["all"] = sum(told.values(), Counter())
    for action, verdicts in told.items():
        counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("right", "wrong", "left"))
        print(f"{action:6} {verdicts.total():4}: {counts}")


if __name__ == "__main__":
    main()
