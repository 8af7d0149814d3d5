"""How the shards of an index are asked: in this process, or each in one of its own.

What asks them elsewhere, such as actors of a cluster (`agent/runs/backends/ray_shards.py`), is a `ShardTransport` too.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from indexes.sharding.shard import Failure, Shard, read_reply, write_question
from schemas.errors import RunError

WORKER = "indexes.sharding.shard_worker"
ATTEMPTS = 2  # at a question whose process dies of it, or is ended from elsewhere
END_SECONDS = 1.0  # for a process to end by itself
PASSAGES_IN_PROCESS = 1_000_000  # up to which an index is not worth the start of processes
log = logging.getLogger("convagent")
ByPlace = Mapping[int, Any]  # something of each of some shards, by their places from 0


class ShardTransport(Protocol):
    """Open shards. Any number of threads may ask."""

    def ask(self, question: str, arguments: ByPlace) -> ByPlace:
        """Ask some shards one of `QUESTIONS` at once: what they reply. Raises what a shard raises."""

    def close(self) -> None:
        """End what was started for them."""


Connect = Callable[[Sequence[Path], int], ShardTransport]  # directories of shards, and how many passages they have


class ShardsInProcess:
    """Shards that are asked one after the other."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._shards = [Shard(directory) for directory in directories]

    def ask(self, question: str, arguments: ByPlace) -> ByPlace:
        return {place: self._shards[place].reply(question, given) for place, given in arguments.items()}

    def close(self) -> None:
        """There is nothing to end."""


class ShardProcesses:
    """Shards that are asked together, each in a process of its own, which ends with this one."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._lock = threading.Lock()
        self._processes = [_ShardProcess(directory) for directory in directories]
        self._finalizer = weakref.finalize(self, _end_all, self._processes)

    def ask(self, question: str, arguments: ByPlace) -> ByPlace:
        with self._lock:
            try:
                for place, given in arguments.items():
                    self._processes[place].ask(question, given)
                replies = {place: self._processes[place].take_reply() for place in arguments}
            except BaseException:
                _end_all(self._processes)  # what they would say next belongs to these questions
                raise
        for reply in replies.values():
            if isinstance(reply, Failure):
                raise reply.to_error()
        return replies

    def close(self) -> None:
        self._finalizer()


def connect_shards(directories: Sequence[Path], passages: int) -> ShardTransport:
    """The way of asking shards that is faster for so many passages on this machine."""
    return ShardsInProcess(directories) if passages <= PASSAGES_IN_PROCESS else ShardProcesses(directories)


def _end_all(processes: Sequence["_ShardProcess"]) -> None:
    for process in processes:
        process.end()


class _ShardProcess:
    """A child process that has a shard open. It starts with the first question, and again where it has ended."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None
        self._question: tuple[str, tuple[Any, ...]] = ("", ())

    def ask(self, question: str, arguments: tuple[Any, ...]) -> None:
        """Put a question; `take_reply` must follow. Raises `RunError` where no process can be started."""
        self._question = question, arguments
        self._send()

    def take_reply(self) -> Any:
        """What the shard replies, or a `Failure`.

        A process that ends meanwhile is started again, and asked again. Raises `RunError` where that one ends, too.
        """
        how = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                log.warning("%s: the process of this shard ended (%s), and is started again", self._directory, how)
                self._send()
            assert self._child
            assert self._child.stdout
            try:
                return read_reply(self._child.stdout)
            except (EOFError, OSError):
                how = self.end()
        remedy = "Is there enough memory? Ask again; `convagent index verify` says whether its files are whole."
        raise RunError(
            f"the process of this shard ended {ATTEMPTS} times ({how})", where=str(self._directory), remedy=remedy
        )

    def end(self) -> str:
        """End the process, if there is one: how it ended."""
        child, self._child = self._child, None
        if child is None:
            return "it was not running"
        for stream in (child.stdin, child.stdout):
            with suppress(OSError):  # a question that it did not read
                assert stream
                stream.close()
        code = _await_end(child)
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _send(self) -> None:
        self._child = self._child or self._start()
        assert self._child.stdin
        with suppress(OSError):  # it has ended, which `take_reply` finds
            write_question(self._child.stdin, *self._question)

    def _start(self) -> "subprocess.Popen[bytes]":
        """Start it in a session of its own: Ctrl-C is for this program, whose end it learns from its standard input."""
        code = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        try:
            return subprocess.Popen(  # noqa: S603  (this Python, and a module of ours)
                [sys.executable, "-P", "-m", WORKER, os.fspath(self._directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": code},
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(f"no process can be started for this shard ({error})", where=str(self._directory)) from error


def _await_end(child: "subprocess.Popen[bytes]") -> int:
    """The exit code of a process that has no input any more."""
    try:
        return child.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
