"""`convagent validate`: a run file checked against the topics that it answers, and mended where that is safe."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent.tracks.repair import repair_turns
from agent.tracks.run_files import run_problems
from agent.tracks.topic_files import read_topics
from indexes.storage.files import check_writable, map_file, write_atomically
from schemas.errors import InvalidInputError
from schemas.records import Problem


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that is wrong with a run, and the number of turns in its topics."""

    run: Path
    turns: int
    problems: tuple[Problem, ...]


def check_run(run: Path, topics_file: Path, edition: str | None, collection: str = "any") -> Verdict:
    """Everything wrong with a run file of an edition (by default that of the topics)."""
    topics = read_topics(topics_file)
    problems = run_problems(map_file(run), topics, edition, collection)
    return Verdict(run, len(topics.turn_ids()), tuple(problems))


def repair_run(run: Path, topics_file: Path, edition: str | None, out: Path, *, overwrite: bool) -> list[Problem]:
    """Write a mended copy and return what was changed. Raises `InvalidInputError` for a run whose shape is broken."""
    check_writable(out, overwrite)
    topics = read_topics(topics_file)
    try:
        chunks, changes = repair_turns(map_file(run), topics, edition or topics.edition)
    except msgspec.DecodeError as error:
        remedy = "Without --repair, `convagent validate` lists all that is wrong with it."
        raise InvalidInputError(f"cannot be mended ({error})", where=str(run), remedy=remedy) from error
    write_atomically(out, chunks)
    return changes
