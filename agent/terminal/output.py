"""Where output goes: data to stdout, progress to stderr, and text from outside as plain text."""

from typing import TYPE_CHECKING, Any

from indexes.text.control_characters import strip_control_characters, strip_directions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Column
    from rich.text import Text


def open_stdout() -> Any:
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to `ErrorReportingGroup`: rich would exit with a code of its own."""
            raise BrokenPipeError

    return PipedConsole(highlight=False)


def print_json(value: Any) -> None:
    """One JSON value on a line of stdout."""
    import msgspec
    import typer

    typer.echo(msgspec.json.encode(value).decode())


def print_table(headers: "Iterable[str | Column]", rows: "Iterable[Iterable[str | Text]]") -> None:
    """A table without lines on stdout."""
    from rich.table import Table

    table = Table(*headers, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    open_stdout().print(table)


def to_plain_text(text: str, style: str = "") -> "Text":
    """Text from outside for rich: nothing in it is read as markup, and control characters are left out.

    So are those that turn the direction of writing.
    """
    from rich.text import Text

    return Text(strip_directions(strip_control_characters(text)), style)


def to_one_line(text: str) -> str:
    """A name or a title on one line: what follows in it must not look like a line of ours."""
    return " ".join(text.split())
