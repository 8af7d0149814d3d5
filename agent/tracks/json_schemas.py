"""The JSON Schemas in `schemas/`: made from the track modules' types by `make schemas`, and tested to be theirs."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

import schemas
from agent.tracks.registry import EDITIONS

HERE = Path(schemas.__file__).parent


def schema_files() -> dict[Path, bytes]:
    """File and contents of every schema: topics and runs of each edition."""
    return {
        HERE / f"{edition}-{kind}.schema.json": _make_schema(module, kind, shape, example)
        for edition, module in EDITIONS.items()
        for kind, shape, example in _document_types(module)
    }


def _document_types(module: ModuleType) -> Iterator[tuple[str, Any, Any]]:
    yield "topics", module.TopicsFile, module.TOPICS_EXAMPLE
    yield "run", module.Run, module.RUN_EXAMPLE


def _make_schema(module: ModuleType, kind: str, shape: Any, example: Any) -> bytes:
    what = {"topics": "A topics file", "run": "One line of a run file" if module.ENDING == ".jsonl" else "A run file"}
    name = (module.__doc__ or "").partition(":")[0]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{module.EDITION} {kind}",
        "description": f"{what[kind]} of {name}.",
        "examples": [example],
    }
    return msgspec.json.format(msgspec.json.encode(head | msgspec.json.schema(shape)), indent=2) + b"\n"


if __name__ == "__main__":
    for path, text in schema_files().items():
        path.write_bytes(text)
