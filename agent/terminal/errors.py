"""How a command ends: errors, Ctrl-C and SIGTERM become a message and an exit code."""

import errno
import os
import re
import signal
import sys
import traceback
from itertools import pairwise
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
        end = args.index("--") if "--" in args else len(args)
        pairs = pairwise(["", *args[:end]])
        belongs_to_command = [before != "--gpu-layers" and not _COMMON.fullmatch(given) for before, given in pairs]
        ordered = sorted(range(end), key=belongs_to_command.__getitem__)  # what holds for all comes first
        return super().parse_args(ctx, [*(args[place] for place in ordered), *args[end:]])

    def invoke(self, ctx: Any) -> Any:
        signal.signal(signal.SIGTERM, _raise_terminated)
        prepare_output()
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # at exit it would be too late to say that it failed
        except ConvagentError as error:
            raise _report(str(error), error.exit_code) from error
        except (KeyboardInterrupt, _TerminatedError) as error:
            is_answering = ctx.invoked_subcommand == "answer"
            advice = ": what was answered is kept, and the same command with --resume goes on" if is_answering else ""
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
    if shows_tracebacks():
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
