"""Makes the JSON Schemas in `schemas/` from the wire types of the editions (`make schemas`).

What they describe and their examples are written there by hand, and kept.
"""

import json
from pathlib import Path

import msgspec

import schemas
from agent.tracks.registry import load_editions

HERE = Path(schemas.__file__).parent


def make_schemas() -> dict[Path, bytes]:
    """File and contents of every schema: topics and runs of each edition."""
    return {
        path: _make_schema(path, f"{edition.name} {kind}", shape)
        for edition in load_editions()
        for kind, shape in (("topics", edition.topics_shape), ("run", edition.run_shape))
        if (path := HERE / f"{edition.name}-{kind}.schema.json")
    }


def _make_schema(path: Path, title: str, shape: object) -> bytes:
    before = json.loads(path.read_bytes()) if path.exists() else {}
    by_hand = {name: before.get(name, "") for name in ("description", "examples")}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **by_hand}
    return msgspec.json.format(msgspec.json.encode(head | msgspec.json.schema(shape)), indent=2) + b"\n"


if __name__ == "__main__":
    for path, text in make_schemas().items():
        path.write_bytes(text)
