"""The interface of an edition of a track: all that the rest of the program knows of one.

To add an edition, write a module with an `EDITION` that implements `Edition`, name it in a line of `registry.py`, and
give it a record in `tests/test_topics.py`. `make schemas` then publishes its schemas, to which you add an example.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from agent.tracks.rules import EditionLimits, OfficialValidator
from agent.tracks.run_layouts import RunLayout
from agent.tracks.run_records import RunTurn
from schemas.records import Plan, RunInfo, Topics


class Edition(Protocol):
    """How topics are read, and how runs are written, read and checked, in one edition of a track.

    `read_topics` gets a value of `topics_shape`; `make_entry` returns and `read_entry` gets one of `entry_shape`.
    """

    name: str  # as in `--format`: "ikat-2025"
    topics_shape: Any  # wire type of a topics file; `schemas/` has an example of this and the next
    run_shape: Any  # of a run file, or of one line of it where the layout is lines
    entry_shape: Any  # of one turn of a run
    layout: RunLayout
    limits: EditionLimits
    official: OfficialValidator  # what the organisers' validator refuses
    optional_parts: frozenset[str]  # parts of a turn that a run may leave out: "rewrite", "passages", "answer"
    statement_threshold: float = Plan().min_probability  # how probable a personal statement must be to be chosen

    def detects_topic(self, topic: Mapping[str, Any]) -> bool:
        """Whether an item of a topics file looks like this edition's."""

    def detects_run(self, fields: Mapping[str, Any]) -> bool:
        """Whether a run file of this edition's layout is this edition's, by its first fields, not yet decoded."""

    def read_topics(self, raw: Any) -> Topics:
        """Topics and labels. Raises `InvalidInputError` for what a schema cannot refuse, such as a turn id twice."""

    def make_entry(self, turn: RunTurn, info: RunInfo) -> Any:
        """A turn as a run file says it. Raises `ValueError` for what the edition cannot express."""

    def read_entry(self, entry: Any, where: str, info: RunInfo) -> RunTurn:
        """What an entry at this place of a run file says; `info` is what the head of the file says."""
