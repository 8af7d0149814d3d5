"""How a command ends: errors, Ctrl-C and SIGTERM become a message and an exit code."""

import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from itertools import islice
from typing import Any

import typer
from typer.core import TyperGroup

from agent.terminal.settings import prepare_output, shows_tracebacks
from indexes.text.control_characters import strip_control_characters
from schemas.errors import ConvagentError
from schemas.secrets import hide_secrets

_COMMON = re.compile(r"-q|-v+|--quiet|--verbose|--gpu-layers(=.*)?")
NO_MEMORY = "there is not enough memory\n  Close other programs, or take a smaller model (--model none needs none)."
INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM


class ErrorReportingGroup(TyperGroup):
    """Turns our errors into a message and an exit code, in this one place for all commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What holds for all commands may stand after the command's name, too: `convagent index build ... -q`."""
        common, rest = split_common_options(args)
        return super().parse_args(ctx, [*common, *rest])

    def invoke(self, ctx: Any) -> Any:
        signal.signal(signal.SIGTERM, _raise_terminated)
        prepare_output()
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # at exit it would be too late to say that it failed
        except ConvagentError as error:
            _show_traceback()
            typer.echo(strip_control_characters(f"convagent: {error}"), err=True)
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            _report_end("interrupted", ctx)
            raise typer.Exit(INTERRUPTED) from error
        except _TerminatedError as error:
            _report_end("terminated", ctx)
            raise typer.Exit(TERMINATED) from error
        except BrokenPipeError as error:  # whoever reads has read enough
            _discard_stdout()
            raise typer.Exit(0) from error
        except (OSError, MemoryError) as error:
            _show_traceback()
            if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
                typer.echo(f"convagent: {NO_MEMORY}", err=True)
                raise typer.Exit(ConvagentError.exit_code) from error
            if error.filename is None:
                _discard_stdout()
            typer.echo(f"convagent: {error.filename or 'standard output'}: {error.strerror or error}", err=True)
            raise typer.Exit(ConvagentError.exit_code) from error
        return result


def split_common_options(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of all commands, wherever they stand before a `--`, and the other arguments."""
    end = args.index("--") if "--" in args else len(args)
    common: list[str] = []
    rest: list[str] = []
    arguments = iter(args[:end])
    for argument in arguments:
        (common if _COMMON.fullmatch(argument) else rest).append(argument)
        if argument == "--gpu-layers":
            common.extend(islice(arguments, 1))
    return common, [*rest, *args[end:]]


def _show_traceback() -> None:
    """With `-vv`, where the error that is being handled is from; no line of it repeats a key."""
    if shows_tracebacks():
        typer.echo(hide_secrets(strip_control_characters(traceback.format_exc())), err=True)


class _TerminatedError(SystemExit):
    """SIGTERM. It is tidied up after as after Ctrl-C, but no loop that catches Ctrl-C goes on after it."""


def _raise_terminated(_signal: int, _frame: object) -> None:
    raise _TerminatedError(TERMINATED)


def _report_end(how: str, ctx: Any) -> None:
    """Say that a command was ended, and how to go on with `answer`, which keeps what it has."""
    advice = ": what was answered is kept, and the same command with --resume goes on"
    typer.echo(f"\nconvagent: {how}{advice if ctx.invoked_subcommand == 'answer' else ''}", err=True)


def _discard_stdout() -> None:
    """Send the rest of the output nowhere, so that Python does not complain of it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
