"""What a backend does: it has workers somewhere, says what they are made of, and answers topics with them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.runs.evidence import Evidence
from agent.runs.trace import TraceLine, WorkerDescription
from agent.runs.worker import WorkerSpecification
from schemas.records import Provided, Topic


@dataclass(frozen=True, slots=True)
class Workforce:
    """The workers that a run asks for. Another process opens the evidence itself, from the paths that are named."""

    specification: WorkerSpecification
    topics: Path
    evidence: Evidence  # as this process opened it
    count: int  # topics at a time
    concurrency: int = 1  # requests at a server at a time, of all workers together


@dataclass(frozen=True, slots=True)
class TopicTask:
    """A topic to be answered, with all that a worker is handed for it."""

    topic: Topic
    given: Mapping[str, Provided]  # by turn id
    replies: Mapping[str, str]  # of the turns that are answered already, by turn id


class Backend(Protocol):
    """Implemented in `local` (threads of this process) and `ray` (actors on a cluster)."""

    @property
    def description(self) -> WorkerDescription:
        """What its workers are made of, the same for all of them."""

    @property
    def in_flight(self) -> int:
        """How many turns are being answered now."""

    def continue_script(self, lines: Iterable[TraceLine]) -> None:
        """Have a scripted model go on after the calls of these lines; any other model has nothing to go on with."""

    def answer(self, tasks: Sequence[TopicTask]) -> Iterator[TraceLine]:
        """A line for each turn without a reply, as it is finished: the turns of a topic in order, topics as they come.

        What ends the run is raised here. A turn at which only a worker is lost is answered all the same.
        """
