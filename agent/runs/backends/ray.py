"""Workers as actors on a Ray cluster. Whoever asks them writes the trace; they send each turn as it is finished.

An actor, or the node that it is on, may be lost at any time. Its topic is then asked again from the last finished turn,
of whichever actor is free, and another actor is started in its place. A turn at which actors are lost again and again
is answered in this process without the model, and says so: perhaps it takes more memory than a node has.
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import prompts
from agent.runs.backends.protocol import TopicTask, Workforce
from agent.runs.backends.ray_cluster import Cluster, find_cause, open_cluster, parse_cluster_address, summarise_loss
from agent.runs.backends.ray_shards import start_shards
from agent.runs.backends.ray_worker import RayWorker, Recipe
from agent.runs.trace import TraceLine
from agent.runs.worker import Worker, WorkerDescription, hash_sources
from schemas.errors import RunError, UsageError, format_count
from schemas.records import Turn

MAX_LOSSES = 3  # of actors at one turn, until it is answered without the model; in one place, until that is given up
NOTICE_SECONDS = 60  # until it is said that the cluster has no room for a worker yet
log = logging.getLogger("convagent")


@dataclass(slots=True)
class Place:
    """Where there is one actor at a time, which is being opened, answers a topic or is idle."""

    actor: Any = None
    awaited: Any = None  # what it was asked for: a description of itself, or the lines of a topic; None: it is idle
    task: TopicTask | None = None  # the topic, with the replies that have come so far
    node: str = ""
    losses: int = 0  # of actors here that were not open yet


@contextmanager
def open_ray(name: str, workforce: Workforce) -> Iterator["RayBackend"]:
    """Actors on the cluster that `--on` names. Raises what `open_cluster` does, and what the first one to open does."""
    count = min(workforce.count, workforce.concurrency)  # each sends one request at a time
    workforce = replace(workforce, count=count)
    log.info("starting %s on Ray", format_count(count, "worker"))
    with open_cluster(parse_cluster_address(name), workforce.count) as cluster:
        backend = RayBackend(cluster, workforce)
        try:
            backend.wait_for_first()
            yield backend
        finally:
            backend.close()


class RayBackend:
    """Hands topics to actors and takes turns from them."""

    def __init__(self, cluster: Cluster, workforce: Workforce) -> None:
        self._cluster, self._ray, self._workforce = cluster, cluster.ray, workforce
        self._shards = start_shards(cluster, workforce.evidence.index)
        self._recipe = Recipe.of(workforce, cluster.threads, self._shards)
        self._description: WorkerDescription | None = None
        self._strangers: set[str] = set()  # nodes that have another kind of processor than the first
        self._waiting: deque[TopicTask] = deque()
        self._losses: Counter[str] = Counter()  # of actors, by turn id
        self._modelless: Worker | None = None
        self._places = [Place() for _ in range(workforce.count)]
        for place in self._places:
            self._start_actor(place)

    @property
    def description(self) -> WorkerDescription:
        assert self._description is not None
        return self._description

    @property
    def in_flight(self) -> int:
        return sum(place.task is not None for place in self._places)

    def continue_script(self, lines: Iterable[TraceLine]) -> None:
        """Scripts are played in one process alone."""

    def close(self) -> None:
        """End the actors."""
        for actor in [place.actor for place in self._places] + [*(self._shards.actors if self._shards else ())]:
            self._ray.kill(actor)

    def wait_for_first(self) -> None:
        """Until one actor is open. Raises what kept it from that."""
        while self._description is None:
            list(self._receive())

    def answer(self, tasks: Sequence[TopicTask]) -> Iterator[TraceLine]:
        self._waiting.extend(task for task in tasks if find_next_turn(task))
        while self._waiting or self.in_flight:
            self._assign_topics()
            yield from self._receive()

    def _start_actor(self, place: Place) -> None:
        place.actor = self._cluster.start_actor(RayWorker, self._recipe)
        place.awaited, place.task = place.actor.open.remote(), None

    def _assign_topics(self) -> None:
        for place in self._places:
            if self._waiting and place.awaited is None:
                place.task = self._waiting.popleft()
                place.awaited = place.actor.answer.options(num_returns="streaming").remote(place.task)

    def _receive(self) -> Iterator[TraceLine]:
        """Wait until an actor has sent something or is lost, and take it."""
        awaiting = [place for place in self._places if place.awaited is not None]
        ready, _ = self._ray.wait([place.awaited for place in awaiting], timeout=NOTICE_SECONDS)
        if not ready and not self.in_flight:
            log.info("still waiting for a worker: the cluster has no room for one, or its models take long to load")
        for place in awaiting:
            if any(place.awaited is sent for sent in ready):
                yield from self._take(place)

    def _take(self, place: Place) -> Iterator[TraceLine]:
        errors = self._ray.exceptions
        try:
            if place.task is None:
                self._note_opened(place, *self._ray.get(place.awaited))
            else:
                line = self._ray.get(next(place.awaited))
                place.task = add_reply(place.task, line)
                yield _warn_without_model(line)
        except StopIteration:
            place.awaited = place.task = None
        except errors.RayTaskError as error:
            raise find_cause(error, place.node) from error
        except errors.RayError as error:
            yield from self._replace_actor(place, summarise_loss(error))

    def _note_opened(self, place: Place, node: str, made_of: WorkerDescription) -> None:
        """Check that an actor is made of the same as this process, and as the others. Raises `UsageError`."""
        found, expected = asdict(made_of), self._expect()
        if different := [name for name, value in expected.items() if found[name] != value]:
            lines = [f"  {name}: {found[name]} there, {expected[name]} elsewhere" for name in different]
            remedy = "Every node needs the same convagent, the same models and the same files."
            what = "\n".join(["a worker would answer by something else than the others:", *lines])
            raise UsageError(what, where=f"node {node}", remedy=remedy)
        self._description = self._description or made_of
        if made_of.processor != self._description.processor and node not in self._strangers:
            self._strangers.add(node)
            what = "node %s has another kind of processor: what is answered there may differ (docs/reliability.md)"
            log.warning(what, node)
        place.node, place.awaited, place.losses = node, None, 0

    def _expect(self) -> dict[str, Any]:
        """What a worker has to be made of, save the processor."""
        if self._description:
            return {name: value for name, value in asdict(self._description).items() if name != "processor"}
        code = {"prompts": prompts.digest(), "convagent": version("convagent"), "sources": hash_sources()}
        return code | {"passages": self._workforce.evidence.digest}

    def _replace_actor(self, place: Place, why: str) -> Iterator[TraceLine]:
        """Start another actor where one was lost, and have its topic asked again."""
        self._ray.kill(place.actor)  # it may only seem to be lost
        task = place.task
        place.losses += task is None
        if place.losses < MAX_LOSSES:
            self._start_actor(place)
        else:
            self._places.remove(place)
        if not self._places:
            remedy = "What was answered is kept, and the same command with --resume goes on."
            raise RunError(f"no worker can be started: {why}", remedy=remedy)
        if task:
            yield from self._ask_again(task, place.node, why)

    def _ask_again(self, task: TopicTask, node: str, why: str) -> Iterator[TraceLine]:
        """Put a topic in front again; answer its next turn here, without the model, if too many were lost at it."""
        turn = find_next_turn(task)
        if turn is None:
            return
        self._losses[turn.id] += 1
        log.warning("turn %s: the worker on node %s was lost (%s)", turn.id, node, why)
        if self._losses[turn.id] == MAX_LOSSES:
            line = self._answer_without_model(task, f"{MAX_LOSSES} workers were lost at it")
            task = add_reply(task, line)
            yield _warn_without_model(line)
        if find_next_turn(task):
            self._waiting.appendleft(task)

    def _answer_without_model(self, task: TopicTask, why: str) -> TraceLine:
        if self._modelless is None:
            specification = replace(self._workforce.specification, model="none")
            self._modelless = specification.open(self._workforce.evidence)
        line = next(self._modelless.answer(task.topic, task.given, task.replies))
        return replace(line, answered=replace(line.answered, without_model=why))


def find_next_turn(task: TopicTask) -> Turn | None:
    """The first turn that has no reply; None where all have one."""
    return next((turn for turn in task.topic.turns if turn.id not in task.replies), None)


def add_reply(task: TopicTask, line: TraceLine) -> TopicTask:
    """The task with one turn finished."""
    answered = line.answered
    return replace(task, replies={**task.replies, answered.turn_id: answered.response.text})


def _warn_without_model(line: TraceLine) -> TraceLine:
    """The line. What an actor itself logged of it is shown nowhere."""
    if why := line.answered.without_model:
        log.warning("turn %s is answered without the model: %s", line.answered.turn_id, why)
    return line
