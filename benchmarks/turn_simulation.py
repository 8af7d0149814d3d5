"""Turns over workers, simulated: conversations wait for a worker, requests for a server, and machines fail.

A worker answers whole conversations, turn by turn, as `convagent answer` has it; where its machine fails, the turn in
hand is lost, and after a restart it goes on behind the last finished one. Time is that of `simpy`, in seconds.
"""

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """What one turn takes where nothing is waited for: seconds of its worker, then of each request to a server."""

    worker: float
    requests: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        return self.worker + sum(self.requests)


Conversation = tuple[ServiceTime, ...]


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where the turns are answered."""

    workers: int
    concurrency: int | None = None  # requests that are under way at the server at a time; None: as many as workers
    batch_growth: float = 0.0  # by which part a request takes longer for each other that the server computes with it
    failure_seconds: float = math.inf  # between two failures of a worker's machine, in the mean; exponential
    restart_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    makespan: float  # until the last turn is answered
    turns: tuple[float, ...]  # seconds from the beginning of each to its end, with what was waited for or lost
    lost: float  # seconds of turns that had to be begun again
    failures: int

    @property
    def turns_an_hour(self) -> float:
        return 3600 * len(self.turns) / self.makespan


class Simulation:
    """One simulated run over these conversations, in their order."""

    def __init__(self, conversations: Iterable[Conversation], deployment: Deployment, seed: int) -> None:
        self._deployment, self._random = deployment, np.random.default_rng(seed)
        self._env = simpy.Environment()
        self._server = simpy.Resource(self._env, deployment.concurrency or deployment.workers)
        self._waiting = iter(conversations)
        self._turns: list[float] = []
        self._lost, self._failures = 0.0, 0

    def run(self) -> Outcome:
        workers = [self._env.process(self._work()) for _ in range(self._deployment.workers)]
        if math.isfinite(self._deployment.failure_seconds):
            for worker in workers:
                self._env.process(self._fail(worker))
        self._env.run(self._env.all_of(workers))
        return Outcome(self._env.now, tuple(self._turns), self._lost, self._failures)

    def _work(self) -> Generator[Any, Any, None]:
        for conversation in self._waiting:
            for turn in conversation:
                begun = self._env.now
                while not (yield from self._finish(turn)):
                    yield from self._restart()
                self._turns.append(self._env.now - begun)

    def _finish(self, turn: ServiceTime) -> Generator[Any, Any, bool]:
        """Answer a turn. False where the machine failed."""
        begun = self._env.now
        try:
            yield self._env.timeout(turn.worker)
            for seconds in turn.requests:
                with self._server.request() as admitted:
                    yield admitted
                    yield self._env.timeout(seconds * (1 + self._deployment.batch_growth * (self._server.count - 1)))
        except simpy.Interrupt:
            self._lost += self._env.now - begun
            return False
        return True

    def _restart(self) -> Generator[Any, Any, None]:
        """A failure meanwhile changes nothing: the machine is down."""
        ready = self._env.now + self._deployment.restart_seconds
        while self._env.now < ready:
            try:
                yield self._env.timeout(ready - self._env.now)
            except simpy.Interrupt:
                continue

    def _fail(self, worker: simpy.Process) -> Generator[Any, Any, None]:
        while True:
            yield self._env.timeout(self._random.exponential(self._deployment.failure_seconds))
            if not worker.is_alive:
                return
            self._failures += 1
            worker.interrupt()


def simulate(conversations: Iterable[Conversation], deployment: Deployment, seed: int = 0) -> Outcome:
    """One run; the same seed fails at the same times."""
    return Simulation(conversations, deployment, seed).run()


def draw_conversations(measured: Sequence[Conversation], turns: int, seed: int) -> Iterator[Conversation]:
    """Conversations drawn from measured ones, whole, until there are so many turns."""
    drawn, left = np.random.default_rng(seed), turns
    while left > 0:
        conversation = measured[int(drawn.integers(len(measured)))][:left]
        left -= len(conversation)
        yield conversation
