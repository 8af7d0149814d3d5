"""What `convagent doctor --privacy` and `convagent forget --everything` say."""

import sys
from collections.abc import Sequence

import msgspec
import typer

from agent.terminal.output import to_one_line
from agent.terminal.privacy import Forgotten, Place, forget_everything, list_kept
from indexes.storage.directories import find_cache_directory, find_data_directory
from indexes.text.control_characters import strip_control_characters
from schemas.errors import UsageError

BEYOND_REACH = (
    "Not in reach, and not deleted: conversations exported elsewhere, runs and traces in other directories, indexes "
    "that you built, models in the Hugging Face cache, backups, your shell's and browser's history, and what a "
    "server's model was sent."
)


def show_privacy(*, as_json: bool) -> None:
    """Every place that keeps something of the person, with size, permissions, and how to delete it."""
    places = list_kept()
    if as_json:
        typer.echo(msgspec.json.encode({"places": places, "beyond_reach": BEYOND_REACH}).decode())
        return
    typer.echo(f"data   {find_data_directory()}\ncache  {find_cache_directory()}\n")
    _list_places(places)
    if not places:
        typer.echo("Nothing is kept.")
    typer.echo(BEYOND_REACH)


def forget_all(*, sure: bool) -> None:
    """Delete all that is kept, once the person has said so, and say what was deleted and what was not.

    Raises `UsageError` where nobody is there to be asked.
    """
    personal = [place for place in list_kept() if place.is_personal]
    if not personal:
        typer.echo("Nothing is kept.")
    elif not sure:
        if not sys.stdin.isatty():
            raise UsageError("nobody is there to be asked", remedy="Give --yes to delete without a question.")
        _list_places(personal)
        if not typer.confirm("Delete all this for good?"):
            typer.echo("Nothing was deleted.")
            return
    _show_forgotten(forget_everything())


def _show_forgotten(done: Forgotten) -> None:
    for place in done.deleted:
        typer.echo(f"deleted  {_show(place.path)}  {place.bytes / 1e6:.1f} MB: {_show(place.holds)}")
    for place in (*done.left, *done.traces):
        typer.echo(
            f"left     {_show(place.path)}  {place.bytes / 1e6:.1f} MB: {_show(place.holds)} ({_show(place.delete)})"
        )
    typer.echo(BEYOND_REACH)


def _list_places(places: Sequence[Place]) -> None:
    for place in places:
        files = f", {place.files} files" if place.files != 1 else ""
        warning = "  OTHERS CAN READ IT" if place.open_to_others else ""
        typer.echo(f"{_show(place.path)}")
        typer.echo(f"  {place.permissions}  {place.bytes / 1e6:.1f} MB{files}{warning}")
        typer.echo(f"  {_show(place.holds)}\n  to delete: {_show(place.delete)}\n")


def _show(text: str) -> str:
    return to_one_line(strip_control_characters(text))
