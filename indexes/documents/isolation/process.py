"""The side that reads a folder: it starts the child for the first file that has to be read, and replaces one that ends.

A file that breaks a limit or its reader is left out with the reason, as any other that cannot be read.
"""

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import msgspec
import psutil

from indexes.documents.formats.pages import MAX_PAGES
from indexes.documents.isolation.worker import Reply, Request, read_framed, write_message
from indexes.documents.reading import ParsedDocument
from schemas.errors import MissingError, RunError

POLL_SECONDS = 0.05  # between two looks at the child
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    seconds: float = 30.0  # of computing; each page that Tesseract reads has as many of its own
    seconds_per_megabyte: float = 10.0  # of the file, beside these
    waiting: float = 4.0  # times as long may pass on the clock, while other programs have the processor
    memory_bytes: int = 2_000_000_000
    reply_bytes: int = 300_000_000  # of its passages

    def describe_memory(self) -> str:
        return f"takes more than {self.memory_bytes // MEGABYTE:,} MB of memory to read"


class ProcessGuard:
    """A thread that ends a process once it takes more than it may."""

    def __init__(self, pid: int, kill: Callable[[], object], limits: ReadingLimits) -> None:
        self.broken = ""  # which limit, once one is
        self._pid, self._kill, self._limits, self._ended = pid, kill, limits, threading.Event()
        self._begun = math.inf, 0.0, 0.0  # the seconds that are allowed, the clock and the processor time at the start
        self._thread = threading.Thread(target=self._watch, name="reading limits", daemon=True)
        self._thread.start()

    def begin(self, seconds: float) -> None:
        self._begun = seconds, time.monotonic(), self._look()[0]

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> tuple[float, int]:
        """The seconds that the process has computed and the bytes that it has; none once it is gone."""
        try:
            process = psutil.Process(self._pid)
            return sum(process.cpu_times()[:2]), process.memory_info().rss
        except psutil.Error:
            return 0.0, 0

    def _watch(self) -> None:
        while not self._ended.wait(POLL_SECONDS) and not self.broken:
            (seconds, began, used), (computed, memory) = self._begun, self._look()
            if memory > self._limits.memory_bytes and seconds < math.inf:
                self.broken = self._limits.describe_memory()
            elif max(computed - used, (time.monotonic() - began) / self._limits.waiting) > seconds:
                self.broken = f"takes more than {seconds:g} seconds to read"
            if self.broken:
                self._kill()


MODULE = "indexes.documents.isolation.worker"
START_SECONDS = 120.0  # for the child to be ready, on a machine that is busy
MAX_ATTEMPTS = 2  # at a file that its reader dies of: somebody else may have ended the child
MAX_ERROR_BYTES = 500  # of what the child says of its end
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "COOKIE", "AUTH")  # in the names of variables
LIMITS = ReadingLimits()


class ReadingProcess(AbstractContextManager["ReadingProcess"]):
    """Reads files one by one in a child process, which begins with the first file and ends with the block.

    One thread at a time may use it.
    """

    def __init__(self, limits: ReadingLimits | None = None) -> None:
        self._limits = limits or LIMITS
        self._child: _Child | None = None

    def __exit__(self, *_: object) -> None:
        child, self._child = self._child, None
        if child:
            child.end()

    def parse_document(self, path: Path, name: str, data: bytes) -> ParsedDocument:
        """As `reading.parse_document`, within limits; where the file breaks one, or its reader, `broke_reader` is set.

        Raises `MissingError` where a library is not installed, and `RunError` where no child can be started.
        """
        reason = ""
        for _ in range(MAX_ATTEMPTS):
            self._child = self._child or _Child(self._limits)
            try:
                return self._child.parse_document(path, name, data)
            except BaseException as error:
                self.__exit__()  # what it would say next belongs to this file
                if not isinstance(error, _BrokenError):
                    raise
                reason = f"{error}, and is left out"
                if not isinstance(error, _DeathError):
                    break
        return ParsedDocument(reason=reason, broke_reader=True)


class _BrokenError(Exception):
    """What of its limits or its reader a file broke."""


class _DeathError(_BrokenError):
    """The child ended by itself, or was ended from elsewhere."""


class _Child:
    def __init__(self, limits: ReadingLimits) -> None:
        self._limits, self._last_words = limits, ""
        # The child makes it and clears it away: this process may be killed before it could do so.
        self._home = Path(tempfile.gettempdir()) / f"convagent-reading-{token_hex(8)}"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        # What the system counts is reserved, what the guard counts is used: so the system allows more.
        memory = str(limits.memory_bytes * 3 // 2)
        try:
            self._process = subprocess.Popen(  # noqa: S603  (this Python, and a module of ours)
                [sys.executable, "-P", "-m", MODULE, memory, str(self._home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=build_environment(os.environ, self._home),
                start_new_session=True,  # Ctrl-C is for the program alone, and the child's group can be ended
            )
        except OSError as error:
            self._errors.close()
            raise _make_start_error(str(error)) from error
        self._guard = ProcessGuard(self._process.pid, self._kill, limits)
        self._guard.begin(START_SECONDS)
        try:
            self._read_reply()
        except BaseException as error:
            self.end()
            if isinstance(error, _BrokenError):
                raise _make_start_error(self._last_words or str(error)) from error
            raise
        self._guard.begin(math.inf)

    def parse_document(self, path: Path, name: str, data: bytes) -> ParsedDocument:
        """What the child makes of a file. Raises `MissingError` and `_BrokenError`."""
        seconds = self._limits.seconds + self._limits.seconds_per_megabyte * (len(data) // MEGABYTE)
        request = Request(os.fsencode(path), name, int(seconds * self._limits.waiting) + 1)
        self._guard.begin(seconds)
        assert self._process.stdin
        try:
            write_message(self._process.stdin, request, data)
        except OSError as error:
            raise self._explain_end() from error
        reply = self._read_reply()
        for _ in range(MAX_PAGES):
            if reply.kind != "page":
                break
            self._guard.begin(self._limits.seconds)
            reply = self._read_reply()
        self._guard.begin(math.inf)
        if reply.kind == "missing":
            raise MissingError(reply.what)
        if reply.kind == "document" and reply.document and _is_of(path, name, reply.document):
            return reply.document
        told = {"memory": self._limits.describe_memory(), "failed": f"makes its reader fail ({reply.what})"}
        raise _BrokenError(told.get(reply.kind, "makes its reader say what makes no sense"))

    def _read_reply(self) -> Reply:
        assert self._process.stdout
        try:
            return msgspec.json.decode(read_framed(self._process.stdout, self._limits.reply_bytes), type=Reply)
        except msgspec.DecodeError as error:
            raise _BrokenError("its reader sent what is no document") from error
        except ValueError as error:
            raise _BrokenError(f"holds more than {self._limits.reply_bytes // MEGABYTE} MB of text") from error
        except EOFError as error:
            raise self._explain_end() from error

    def _explain_end(self) -> Exception:
        self.end()
        if self._guard.broken:
            return _BrokenError(self._guard.broken)
        code = self._process.returncode
        names = {-each.value: each.name for each in signal.Signals}
        return _DeathError(f"makes its reader crash ({names.get(code, f'exit code {code}')})")

    def _kill(self) -> None:
        """End the child's group, unless the child was waited for: its number may be another's then.

        Its temporary files go first: this program may be killed before it could clear them away after the child.
        """
        shutil.rmtree(self._home, ignore_errors=True)
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        self._guard.end()
        self._kill()
        self._process.wait()
        with suppress(ValueError):  # it ended before, and was heard then
            self._errors.seek(0)
            said = self._errors.read()[-MAX_ERROR_BYTES:].decode("utf-8", "replace")
            self._last_words = said.strip().rpartition("\n")[2]
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream:
                with suppress(OSError):  # what was not sent
                    stream.close()
        shutil.rmtree(self._home, ignore_errors=True)


def _is_of(path: Path, name: str, document: ParsedDocument) -> bool:
    """Whether all passages say that they are from this file: the child is not trusted."""
    uri, start = path.absolute().as_uri(), f"{name}:"
    return all(passage.id.startswith(start) and passage.url.startswith(uri) for passage in document.passages)


def build_environment(variables: Mapping[str, str], home: Path) -> dict[str, str]:
    """The child's variables: nothing of this program's settings and no secrets, but where the code is."""
    kept = {
        name: value
        for name, value in variables.items()
        if not name.startswith("CONVAGENT_") and not any(word in name.upper() for word in _SECRETS)
    }
    code = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(home))
    return kept | temporary | {"PYTHONPATH": code, "OPENBLAS_NUM_THREADS": "1"}


def _make_start_error(why: str) -> RunError:
    remedy = "Documents are read in a process of their own; `convagent doctor` says what is installed."
    return RunError(f"the process that reads documents does not start ({why})", remedy=remedy)
