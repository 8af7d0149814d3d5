"""What one file may take, and the guard that ends a child process that takes more."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

POLL_SECONDS = 0.05  # between two looks at the child
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What one file may take."""

    seconds: float = 30.0  # of computing; each page that Tesseract reads has as many of its own
    seconds_per_megabyte: float = 10.0  # of the file, beside these
    waiting: float = 4.0  # times as long may pass on the clock, while other programs have the processor
    memory_bytes: int = 2_000_000_000
    reply_bytes: int = 300_000_000  # of its passages

    def compute_seconds(self, size: int) -> float:
        """How long a file of so many bytes may take."""
        return self.seconds + self.seconds_per_megabyte * (size // MEGABYTE)


class ProcessGuard:
    """A thread that ends a process once it takes more than it may."""

    def __init__(self, pid: int, kill: Callable[[], object], limits: ReadingLimits) -> None:
        self.broken = ""  # which limit, once one is
        self._pid, self._kill, self._limits, self._ended = pid, kill, limits, threading.Event()
        self._seconds: list[float] = []  # the time allowed, while something is under way; a new list for each begin
        self._thread = threading.Thread(target=self._watch, name="reading limits", daemon=True)
        self._thread.start()

    def begin(self, seconds: float) -> None:
        """From now on so many seconds are allowed."""
        self._seconds = [seconds]

    def rest(self) -> None:
        """Nothing is under way."""
        self._seconds = []

    def end(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        watched: list[float] = []
        began = used = 0.0
        while not self._ended.wait(POLL_SECONDS):
            allowed = self._seconds
            try:
                process = psutil.Process(self._pid)
                times, memory = process.cpu_times(), process.memory_info().rss
            except psutil.Error:
                return  # it is gone
            computed = times.user + times.system
            if allowed is not watched:
                watched, began, used = allowed, time.monotonic(), computed
            if allowed and (broken := self._find_broken(allowed[0], computed - used, time.monotonic() - began, memory)):
                self.broken = broken
                self._kill()
                return

    def _find_broken(self, allowed: float, computed: float, passed: float, memory: int) -> str:
        """Which limit is broken, "" where none is."""
        if memory > self._limits.memory_bytes:
            return describe_memory(self._limits)
        if computed > allowed or passed > allowed * self._limits.waiting:
            return f"takes more than {allowed:g} seconds to read"
        return ""


def describe_memory(limits: ReadingLimits) -> str:
    """That a file broke the limit of memory."""
    return f"takes more than {limits.memory_bytes // MEGABYTE:,} MB of memory to read"
