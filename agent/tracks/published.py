"""The JSON Schemas in `schemas/`: made from the track modules' types by `make schemas`, and tested to be theirs."""

from pathlib import Path
from typing import Any

import msgspec

import schemas
from agent.tracks import TRACKS

HERE = Path(schemas.__file__).parent


def published() -> dict[Path, bytes]:
    """File and contents of every schema: topics and runs of each edition."""
    files: dict[Path, bytes] = {}
    for edition, module in TRACKS.items():
        run = module.RunLine if module.ENDING == ".jsonl" else module.Run
        for kind, shape in (("topics", module.TopicsFile), ("run", run)):
            title = f"{edition} {kind}" + (" (one line)" if shape is getattr(module, "RunLine", None) else "")
            files[HERE / f"{edition}-{kind}.schema.json"] = _schema(shape, title)
    return files


def _schema(shape: Any, title: str) -> bytes:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return msgspec.json.format(msgspec.json.encode(head | msgspec.json.schema(shape)), indent=2) + b"\n"


if __name__ == "__main__":
    for path, text in published().items():
        path.write_bytes(text)
