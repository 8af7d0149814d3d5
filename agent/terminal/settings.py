"""What holds for every command: how much is logged, and the defaults in `convagent.toml`."""

import io
import logging
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from indexes.text.control_characters import strip_control_characters
from schemas.errors import InvalidInputError
from schemas.secrets import hide_keys

SETTINGS_FILE = "convagent.toml"
log = logging.getLogger("convagent")
WITH_TRACEBACKS = logging.DEBUG - 1  # a level


class _PlainFormatter(logging.Formatter):
    """Keeps control characters and keys from the terminal: messages quote files and servers, and name our own links."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_keys(strip_control_characters(super().format(record)))


def _pass_once() -> Callable[[logging.LogRecord], bool]:
    """Let a warning through once: a file that is topics and ranking at once is read twice, and as odd each time."""
    warned: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if record.levelno != logging.WARNING or message not in warned:
            warned.add(message)
            return True
        return False

    return is_new


def configure_logging(*, quiet: bool, verbose: int) -> None:
    """Log to stderr: only errors where it is quiet, everything where it is verbose."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter("%(message)s"))
    handler.addFilter(_pass_once())
    log.handlers[:] = [handler]
    log.setLevel(logging.ERROR if quiet else (logging.INFO, logging.DEBUG, WITH_TRACEBACKS)[min(verbose, 2)])
    if quiet:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when huggingface_hub is imported


def prepare_output() -> None:
    """Lose nothing on the way out: what a stream cannot encode is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_quiet() -> bool:
    """Whether only errors are to be shown."""
    return log.level >= logging.ERROR


def shows_tracebacks() -> bool:
    """Whether an error is shown with its traceback (`-vv`)."""
    return log.level == WITH_TRACEBACKS


def read_settings_file() -> dict[str, Any]:
    """The contents of `convagent.toml` in the current directory; empty where there is none.

    Raises `InvalidInputError` where it is not TOML.
    """
    path = Path(SETTINGS_FILE)
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"is not TOML ({error})", where=SETTINGS_FILE) from error
    except RecursionError as error:
        raise InvalidInputError("is nested too deeply", where=SETTINGS_FILE) from error
