"""JSON lines (.jsonl) as passages: each line is one."""

import json
from collections.abc import Iterator

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks
from indexes.documents.document_reader import DocumentReader, RepeatedNote, read_as_text
from indexes.documents.json_files import describe_value
from indexes.text.segmentation import SentenceSplitter


def chunk_json_lines(text: str, split: SentenceSplitter, notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """No title, and the passages, whose places are line numbers. Broken lines are added to `notes`."""
    return "", (chunk for block in _read_blocks(text, notes) for chunk in chunk_blocks([block], split))


def _read_blocks(text: str, notes: list[str]) -> Iterator[Block]:
    broken = RepeatedNote(notes, "lines are broken JSON")
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            described = describe_value(json.loads(line)) if line.strip() else ""
        except (ValueError, RecursionError) as error:
            broken.add(f"line {number} is broken JSON ({error})")
        else:
            yield Block((Line(number, described),))
    broken.add_rest()


READER = DocumentReader((".jsonl",), read_as_text(chunk_json_lines))
