"""Commands run in this process as the command line runs them: what they say, how they end, how long it may take."""

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache as remember
from pathlib import Path
from traceback import format_exc
from typing import Any

import pytest
import typer.main

import cli

PATIENCE = 120  # seconds until a case counts as one that hangs
SETTINGS = {"CONVAGENT_MODEL": "none", "CONVAGENT_EMBEDDER": "none", "NO_COLOR": "1", "COLUMNS": "200"}


class HangError(BaseException):
    """Time is up. No `Exception`, so that nothing takes it for one of its own."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    crash: str = ""  # a traceback


def call(*arguments: object, typed: str = "") -> Ended:
    """Run a command, which reads what is `typed`. A traceback and a panic of a library are told as a crash."""
    out, err = io.BytesIO(), io.BytesIO()
    saved = sys.stdout, sys.stderr, sys.stdin
    said = io.TextIOWrapper(out, encoding="utf-8"), io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace")
    sys.stdout, sys.stderr, sys.stdin = *said, io.StringIO(typed)
    code, crash = 0, ""
    try:
        _command().main(args=[str(argument) for argument in arguments], prog_name="convagent")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic of a Rust library is no Exception
        code, crash = 1, format_exc()
    finally:
        sys.stdout, sys.stderr, sys.stdin = saved
        for stream in said:
            stream.flush()
    return Ended(code, out.getvalue().decode("utf-8"), err.getvalue().decode("utf-8"), crash)


@remember
def _command() -> Any:
    return typer.main.get_command(cli.app)


@contextmanager
def settings(cache: Path | None = None) -> Iterator[None]:
    """No model, no colours, and a cache of its own where one is named, whatever the environment says."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (SETTINGS | ({"CONVAGENT_CACHE": str(cache)} if cache else {})).items():
            patch.setenv(name, value)
        yield


@contextmanager
def watched() -> Iterator[None]:
    """What takes longer than `PATIENCE` is interrupted."""

    def late(*_: object) -> None:
        raise HangError(f"still at it after {PATIENCE} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
