"""What the benchmarks of labelled questions share: their options, their table of one row, their JSON."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """The options."""

    data: Path
    model: str = "none"
    every: int = 1
    json: Path | None = None


def parse_options(description: str | None, data: str) -> Asked:
    """The options of the command line; `data` names what is read."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar=data)
    parser.add_argument("--model", default="none")
    parser.add_argument("--every", type=int, default=1, help="every n-th question of each kind")
    parser.add_argument("--json", type=Path, help="write figures and all answers to this file")
    return Asked(**vars(parser.parse_args()))


def report(asked: Asked, table: Mapping[str, float], answered: Sequence[Any], seconds: float) -> None:
    """Print the table; write it with all answers (records) where that is wanted."""
    print(f"{len(answered)} questions, --model {asked.model}, {seconds / len(answered):.2f} seconds each\n")
    print(f"| {' | '.join(table)} |\n{'|---' * len(table)}|")
    print(f"| {' | '.join(f'{value:.3f}'.ljust(len(name)) for name, value in table.items())} |")
    if asked.json:
        written = {"model": asked.model, "every": asked.every, "table": table, "answers": list(map(asdict, answered))}
        asked.json.write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
