"""What holds for every command: how it is made, how much is logged, the defaults in `convagent.toml`, how it ends.

Errors, Ctrl-C and SIGTERM become a message and an exit code.
"""

import errno
import io
import logging
import os
import re
import signal
import sys
import tomllib
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import typer
from typer.core import TyperGroup

from indexes.text.control_characters import strip_control_characters
from schemas.errors import ConvagentError, InvalidInputError
from schemas.secrets import hide_keys, hide_secrets

SETTINGS_FILE = "convagent.toml"
CONVERSING = ("chat", "ask", "serve", "mcp", "doctor")  # the commands that `convagent model use` is for
T = TypeVar("T")
log = logging.getLogger("convagent")
WITH_TRACEBACKS = logging.DEBUG - 1  # a level
_COMMON = re.compile(r"-q|-v+|--quiet|--verbose|--gpu-layers(=.*)?")
NO_MEMORY = "there is not enough memory\n  Close other programs, or take a smaller model (--model none needs none)."
TO_GO_ON = {  # by the command that was interrupted
    "answer": ": what was answered is kept, and the same command with --resume goes on",
    "model": ": what came is kept, and the same command goes on",
}
INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM


class _PlainFormatter(logging.Formatter):
    """Keeps control characters and keys from the terminal: messages quote files and servers, and name our own links."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_keys(strip_control_characters(super().format(record)))


def _pass_once() -> Callable[[logging.LogRecord], bool]:
    """Let a warning through once: a file that is topics and ranking at once is read twice, and as odd each time."""
    warned: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        was_said = record.levelno == logging.WARNING and record.getMessage() in warned
        warned.add(record.getMessage())
        return not was_said

    return is_new


class _StderrHandler(logging.StreamHandler[Any]):
    """Writes to what is standard error then: above a prompt, while one waits for a line."""

    stream = property(lambda _self: sys.stderr, lambda _self, _stream: None)


def configure_logging(*, quiet: bool, verbose: int) -> None:
    """Log to stderr: only errors where it is quiet, everything where it is verbose."""
    handler = _StderrHandler()
    handler.setFormatter(_PlainFormatter("%(message)s"))
    handler.addFilter(_pass_once())
    log.handlers[:] = [handler]
    log.setLevel(logging.ERROR if quiet else (logging.INFO, logging.DEBUG, WITH_TRACEBACKS)[min(verbose, 2)])
    if quiet:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when huggingface_hub is imported


def is_quiet() -> bool:
    return log.level >= logging.ERROR


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


def read_defaults() -> dict[str, Any]:
    """The defaults of each command: of `convagent.toml`, and for conversations the models that were chosen for them.

    A run does not heed these: what it is made by stands in its command. Raises `InvalidInputError` for damaged files.
    """
    from agent.models.choice import read_choice

    chosen, tables = read_choice(), read_settings_file()
    return tables | {command: chosen | tables.get(command, {}) for command in CONVERSING if chosen}


class ErrorReportingGroup(TyperGroup):
    """Turns our errors into a message and an exit code, in this one place for all commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What holds for all commands may stand after the command's name, too: `convagent index build ... -q`."""
        end = args.index("--") if "--" in args else len(args)
        pairs = pairwise(["", *args[:end]])
        belongs_to_command = [before != "--gpu-layers" and not _COMMON.fullmatch(given) for before, given in pairs]
        ordered = sorted(range(end), key=belongs_to_command.__getitem__)  # what holds for all comes first
        return super().parse_args(ctx, [*(args[place] for place in ordered), *args[end:]])

    def invoke(self, ctx: Any) -> Any:
        signal.signal(signal.SIGTERM, _raise_terminated)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # nothing is lost that a stream cannot encode
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # at exit it would be too late to say that it failed
        except ConvagentError as error:
            raise _report(str(error), error.exit_code) from error
        except (KeyboardInterrupt, _TerminatedError) as error:
            advice = TO_GO_ON.get(ctx.invoked_subcommand, "")
            how, code = ("terminated", TERMINATED) if isinstance(error, SystemExit) else ("interrupted", INTERRUPTED)
            typer.echo(f"\nconvagent: {how}{advice}", err=True)
            raise typer.Exit(code) from error
        except BrokenPipeError as error:  # whoever reads has read enough
            _discard_stdout()
            raise typer.Exit(0) from error
        except (OSError, MemoryError) as error:
            if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
                raise _report(NO_MEMORY) from error
            if error.filename is None:
                _discard_stdout()
            raise _report(f"{error.filename or 'standard output'}: {error.strerror or error}") from error
        return result


def _report(what: str, code: int = ConvagentError.exit_code) -> typer.Exit:
    """What ends the command. It says what went wrong and, with `-vv`, where; no line of that repeats a key."""
    if log.level == WITH_TRACEBACKS:
        typer.echo(hide_secrets(strip_control_characters(traceback.format_exc())), err=True)
    typer.echo(strip_control_characters(f"convagent: {what}"), err=True)
    return typer.Exit(code)


class _TerminatedError(SystemExit):
    """SIGTERM. It is tidied up after as after Ctrl-C, but no loop that catches Ctrl-C goes on after it."""


def _raise_terminated(_signal: int, _frame: object) -> None:
    raise _TerminatedError(TERMINATED)


def _discard_stdout() -> None:
    """Send the rest of the output nowhere, so that Python does not complain of it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@dataclass_transform(frozen_default=True)
def command(app: typer.Typer, name: str, **how: Any) -> Callable[[type[T]], type[T]]:
    """Make a command of a class: its fields are the options, its docstring is the help, and calling it does the work.

    The default of a field is what `typer.Option` or `typer.Argument` returns; `how` is as for `typer.Typer.command`.
    """

    def register(kind: type[T]) -> type[T]:
        made: Any = dataclass(frozen=True)(kind)

        def run(**values: Any) -> None:
            made(**values)()

        run.__doc__ = kind.__doc__
        parameters = [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in fields(made)
        ]
        run.__signature__ = signature(run).replace(parameters=parameters)  # type: ignore[attr-defined]
        app.command(name, **how)(run)
        return kind

    return register


def fill(kind: Callable[..., T], options: Any, **values: Any) -> T:
    """A dataclass from these values, and from the options that are called as its other fields are."""
    shared = signature(kind).parameters.keys() & {field.name for field in fields(options)}
    return kind(**{name: getattr(options, name) for name in shared} | values)
