"""The manual page of all commands, and the completions of the shells: `make man` writes them, and the wheel has them.

The page says what `--help` and docs/cli.md say. click-man does the same for applications of Click; of those of Typer,
which has classes of its own, it leaves the options out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]  # not exported by name

from agent.terminal.cli_reference import MARKUP, list_parameters, walk_application

NAME = "convagent"
COMPLETIONS = {"bash": NAME, "zsh": f"_{NAME}", "fish": f"{NAME}.fish"}  # as each shell looks for it
ENDS = """.SH EXIT STATUS
0 success, 2 usage, 4 something is missing, 5 an input is invalid, 6 the work failed, 130 interrupted, 143 terminated.
.SH FILES
.I convagent.toml
in the current directory has defaults of options, a table a command."""


def render_man_page(app: typer.Typer) -> str:
    """The page in roff: each command with its help, arguments and options."""
    root, *commands = walk_application(app)
    summary = (root[0].help or "").partition(":")[0]
    head = [f'.TH {NAME.upper()} 1 "" "{NAME}"', ".SH NAME", f"{NAME} \\- {_escape(summary).lower()}"]
    head += [".SH SYNOPSIS", f".B {NAME}", "[OPTIONS] COMMAND [ARGUMENTS]...", ".SH DESCRIPTION"]
    head += [*_render_help(root[0]), ".SH OPTIONS", *_render_parameters(*root), ".SH COMMANDS"]
    return "\n".join([*head, *(line for found in commands for line in _render_command(*found)), ENDS, ""])


def write_man_page(app: typer.Typer, folder: Path) -> None:
    """Write `convagent.1` and a completion for each shell into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.1").write_text(render_man_page(app), encoding="utf-8")
    for shell, name in COMPLETIONS.items():
        script = get_completion_script(prog_name=NAME, complete_var=f"_{NAME.upper()}_COMPLETE", shell=shell)
        (folder / name).write_text(f"{script}\n", encoding="utf-8")


def _render_command(command: Any, context: Any) -> Iterator[str]:
    yield f".SS {context.command_path}"
    yield from _render_help(command)
    yield from _render_parameters(command, context)


def _render_help(command: Any) -> Iterator[str]:
    for line in (command.help or "").strip().splitlines():
        if line.strip():
            yield from ([".br"] if line.strip().startswith("[bold]") else [])
            yield _escape(line.strip())


def _render_parameters(command: Any, context: Any) -> Iterator[str]:
    for names, text in list_parameters(command, context):
        yield from (".TP", f"\\fB{_escape(names)}\\fR", _escape(" ".join(text.split())))


def _escape(text: str) -> str:
    """A line of text with Rich's bold as roff's, and nothing that roff would take for its own."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    bold = MARKUP.sub(r"\\fB\1\\fR", plain)
    return f"\\&{bold}" if bold.startswith((".", "'")) else bold
