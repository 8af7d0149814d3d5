"""Libraries in Rust report a panic on standard error themselves, before Python learns of it: that is held back."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STDERR = 2
_lock = threading.Lock()
_threads = 0  # that are within at this moment
_saved = -1  # the person's standard error meanwhile
_collected = -1  # a file in place of it, once there is one


@contextmanager
def hold_back_panics() -> Iterator[None]:
    """Keep standard error back within the block, in all threads; at its end it is written, unless there was a panic."""
    _enter()
    panicked = False
    try:
        yield
    except BaseException as error:
        panicked = type(error).__name__ == "PanicException"
        raise
    finally:
        _leave(panicked=panicked)


def _enter() -> None:
    global _threads, _saved, _collected
    with _lock:
        if not _threads:
            with suppress(OSError):  # there may be no standard error, or no room
                if _collected < 0:
                    _collected = _open_nameless()
                _saved = os.dup(STDERR)
                os.dup2(_collected, STDERR)
        _threads += 1


def _leave(*, panicked: bool) -> None:
    global _threads, _saved
    with _lock:
        _threads -= 1
        if panicked and _saved >= 0:
            _take_collected()
        if _threads or _saved < 0:
            return
        os.dup2(_saved, STDERR)
        os.close(_saved)
        _saved = -1
        if held_back := _take_collected():
            with suppress(OSError):
                os.write(STDERR, held_back)


def _open_nameless() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _take_collected() -> bytes:
    """What was written meanwhile, which is then forgotten."""
    size = os.lseek(_collected, 0, os.SEEK_CUR)
    if not size:
        return b""
    held_back = os.pread(_collected, size, 0)
    os.ftruncate(_collected, 0)
    os.lseek(_collected, 0, os.SEEK_SET)
    return held_back
