"""The reference of all commands as plain Markdown: `make docs` writes docs/cli.md with it.

It walks the command objects that Typer makes of `cli.py`, and asks each parameter for the same record that `--help`
shows: names, text, default and environment variable.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

MARKUP = re.compile(r"\[bold\](.*?)\[/\]")
HEAD = """# Commands

Every command with its arguments, options and examples, as `--help` shows them. Written by `make docs`; edit the
help in `cli.py`, not this file. A flag goes before the environment variable that is named beside it, and that before
`convagent.toml` in the current directory.
"""


def render_reference(app: typer.Typer) -> str:
    """Markdown with a section for each command of an application."""
    sections = [_render_command(*found) for found in walk_application(app)]
    return "\n".join([HEAD, *sections])


def walk_application(app: typer.Typer) -> Iterator[tuple[Any, Any]]:
    """The command of an application and all below it, each with its context, in the order of the help."""
    command: Any = typer.main.get_command(app)
    return _walk_commands(command, _open_context(command, app.info.name))


def list_parameters(command: Any, context: Any, kind: str = "") -> list[tuple[str, str]]:
    """The names and texts of a command's parameters, save `--help`; `kind` is "argument", "option" or all."""
    parameters = [each for each in command.get_params(context) if "--help" not in each.opts]
    of_kind = [each for each in parameters if each.param_type_name == kind or not kind]
    return [record for each in of_kind if (record := each.get_help_record(context))]


def write_reference(app: typer.Typer, path: Path) -> None:
    """Write the reference of an application to a file."""
    path.write_text(render_reference(app), encoding="utf-8")


def _open_context(command: Any, name: str | None, parent: Any = None) -> Any:
    return command.context_class(command, info_name=name, parent=parent, **command.context_settings)


def _walk_commands(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    yield command, context
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _walk_commands(child, _open_context(child, name, context))


def _render_command(command: Any, context: Any) -> str:
    level = "##" if context.parent is None or context.parent.parent is None else "###"
    parts = [f"{level} {context.command_path}\n", _render_help(command.help or "")]
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        parts.append(_render_parameters(title, list_parameters(command, context, kind)))
    return "\n".join(part for part in parts if part)


def _render_help(text: str) -> str:
    """A docstring: paragraphs, then the examples, each a point of a list."""
    lines = []
    for line in text.strip().splitlines():
        point = "- " if line.strip().startswith("[bold]") else ""
        lines.append(point + _escape(line.strip()))
    return "\n".join(lines) + "\n"


def _render_parameters(title: str, records: list[tuple[str, str]]) -> str:
    if not records:
        return ""
    points = [f"- `{names}`: {_escape(' '.join(text.split()))}" if text else f"- `{names}`" for names, text in records]
    return "\n".join([f"{title}:\n", *points]) + "\n"


def _escape(text: str) -> str:
    """The text without Rich's markup, and with nothing that Markdown would take for a tag or emphasis."""
    pieces = MARKUP.split(text)  # outside and inside of the markup, in turns
    outside = [re.sub(r"(<(?=\w)|\*)", r"\\\1", piece) for piece in pieces[::2]]
    inside = [f"`{piece}`" for piece in pieces[1::2]] + [""]
    return "".join(piece for pair in zip(outside, inside, strict=True) for piece in pair)
