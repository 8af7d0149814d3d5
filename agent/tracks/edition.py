"""The interface of an edition of a track: all that the rest of the program knows of one.

To add an edition, write a module with an `EDITION` that implements `Edition`, name it in a line of `registry.py`, and
give it a record in `tests/test_topics.py`. `make schemas` then publishes its schemas, to which you add an example.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from msgspec import Raw

from agent.tracks.lenient_reading import Oddities, decode_spelling
from agent.tracks.rules import EditionRules
from agent.tracks.run_records import RunTurn
from schemas.records import Plan, RunInfo, Topics
from schemas.wire import Data

Entry = tuple[str, Data | Raw]  # one turn of a run file, not yet decoded, behind its JSON path


class Edition(Protocol):
    """How topics are read, and how runs are written, read and checked, in one edition of a track.

    `read_topics` gets a value of `topics_shape`; `make_entry` returns and `read_entry` gets one of `entry_shape`. The
    turns of a run stand in an array or on lines, without a head; `Ikat2023` has them in an object. Files are split into
    turns without decoding them, so that only one turn at a time is in memory in its decoded form.
    """

    name: str  # as in `--format`: "ikat-2025"
    topics_shape: Any  # wire type of a topics file; `schemas/` has an example of this and the next
    run_shape: Any  # of a run file, or of one line of it where the turns stand on lines
    entry_shape: Any  # of one turn of a run
    on_lines: bool = False  # whether each turn is a line
    rules: EditionRules
    topic_fields: frozenset[str]  # that show that an item of a topics file is of this edition
    run_fields: frozenset[str]  # the same of a run file, or of its first turn
    optional_parts: frozenset[str]  # parts of a turn that a run may leave out: "rewrite", "passages", "answer"
    statement_threshold: float = Plan().min_probability  # how probable a personal statement must be to be chosen

    def detects_topic(self, topic: Mapping[str, Any]) -> bool:
        """Whether an item of a topics file looks like this edition's."""
        return self.topic_fields <= topic.keys()

    def detects_run(self, fields: Mapping[str, Any]) -> bool:
        """Whether a run file is this edition's, by its first fields, not yet decoded."""
        return self.run_fields <= fields.keys()

    def read_topics(self, raw: Any) -> Topics:
        """Topics and labels. Raises `InvalidInputError` for what a schema cannot refuse, such as a turn id twice."""

    def make_entry(self, turn: RunTurn, info: RunInfo) -> Any:
        """A turn as a run file says it. Raises `ValueError` for what the edition cannot express."""

    def read_entry(self, entry: Any, where: str, info: RunInfo) -> RunTurn:
        """What an entry at this place of a run file says; `info` is what the head of the file says."""

    def encode_frame(self, _info: RunInfo) -> tuple[bytes, bytes, bytes]:
        """What stands before, between and after the turns of a file."""
        return (b"", b"\n", b"\n") if self.on_lines else (b"[", b",", b"]")

    def json_path(self, number: int) -> str:
        """Where the turn with this number (from 0) stands in a file."""
        return f"line {number + 1} $" if self.on_lines else f"$[{number}]"

    def split_entries(self, data: Data, oddities: Oddities) -> tuple[RunInfo, Iterator[Entry]]:
        """What the head of a file says, and its turns. Raises `msgspec.DecodeError` for a file of another form."""
        rows: Any = bytes(data).splitlines() if self.on_lines else decode_spelling(data, list[Raw], "$", oddities)
        return RunInfo(""), ((self.json_path(n), row) for n, row in enumerate(rows) if bytes(row).strip())
