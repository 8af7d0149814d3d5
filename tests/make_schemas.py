"""Makes the JSON Schemas in `schemas/` from the wire types of the editions (`make schemas`)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

import schemas
from agent.tracks.edition import Document, Edition
from agent.tracks.registry import load_editions

HERE = Path(schemas.__file__).parent


def make_schemas() -> dict[Path, bytes]:
    """File and contents of every schema: topics and runs of each edition."""
    return {
        HERE / f"{edition.name}-{kind}.schema.json": _make_schema(f"{edition.name} {kind}", what, document)
        for edition in load_editions()
        for kind, what, document in _list_documents(edition)
    }


def _list_documents(edition: Edition) -> Iterator[tuple[str, str, Document]]:
    """The kind, the description and the type of every document that an edition publishes a schema for."""
    yield "topics", f"A topics file of {edition.title}.", edition.topics
    yield "run", f"{edition.layout.document} of {edition.title}.", edition.run


def _make_schema(title: str, description: str, document: Document) -> bytes:
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "examples": [document.example],
    }
    return msgspec.json.format(msgspec.json.encode(head | msgspec.json.schema(document.shape)), indent=2) + b"\n"


if __name__ == "__main__":
    for path, text in make_schemas().items():
        path.write_bytes(text)
