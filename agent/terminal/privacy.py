"""What of a person is kept on this machine, and where: every file of convagent's own directories, and how to delete it.

Files are looked for, not remembered: whatever a version of convagent leaves there is listed, known or not.
"""

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import typer

from agent.terminal.output import print_json, to_one_line
from indexes.passage_index import INFO_FILE
from indexes.storage.directories import find_cache_directory, find_data_directory, name_cache_directory
from indexes.text.control_characters import strip_control_characters
from schemas.errors import RunError, UsageError, format_count

EVERYTHING = "convagent forget --everything"
TRACES = "*.trace.jsonl"
UNKNOWN = "unknown: perhaps not convagent's"
NOT_PERSONAL = "a copy of a model, which holds nothing of you"
KINDS = {  # of the entries of both directories, by their names: what they hold, and how to delete it
    "convagent.sqlite*": (
        "conversations, and statements about you",
        f"convagent chats --forget NUMBER; /about-me remove NUMBER; {EVERYTHING}",
    ),
    "replies.sqlite*": ("questions, statements and passages that `answer` showed a model, and its replies", EVERYTHING),
    "vectors.sqlite*": ("vectors of what was searched and asked, from which words can be guessed", EVERYTHING),
    "documents": ("what was read of your documents", EVERYTHING),
    "*-token": ("what `serve` and `mcp` let in by", EVERYTHING),
    "convagent-*": ("what convagent keeps for itself", EVERYTHING),
    ".convagent*.tmp": ("left behind by a process that was ended", EVERYTHING),
    "chosen-models.json": ("which models you chose", "convagent model use smollm2"),
    "users.json": ("the users of `serve`, by name, with hashes of their tokens", "rm"),
    "*.gguf": (NOT_PERSONAL, "rm"),
    "models": (NOT_PERSONAL, "rm"),
}

BEYOND_REACH = (
    "Not in reach, and not deleted: conversations exported elsewhere, runs and traces in other directories, indexes "
    "that you built, models in the Hugging Face cache, backups, your shell's and browser's history, and what a "
    "server's model was sent."
)
_OWN_FOLDER = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or a directory with all that is in it."""

    path: str
    holds: str
    files: int
    bytes: int
    delete: str  # how

    @property
    def is_personal(self) -> bool:
        """Whether convagent keeps it of the person, and so forgets it."""
        return EVERYTHING in self.delete

    def describe(self) -> str:
        """Where it is, how large, and what it holds, on one line."""
        count = format_count(self.files, "file")
        return to_one_line(strip_control_characters(f"{self.path}  {count}, {self.bytes / 1e6:.1f} MB: {self.holds}"))


def show_privacy(*, as_json: bool) -> None:
    """Every place that keeps something of the person, with its size, and how to delete it."""
    places = (*_list_own(), *_list_traces())
    if as_json:
        print_json({"places": places, "beyond_reach": BEYOND_REACH})
        return
    typer.echo(f"data   {find_data_directory()}\ncache  {find_cache_directory()}\n")
    _show_places(places)
    typer.echo(BEYOND_REACH if places else f"Nothing is kept.\n{BEYOND_REACH}")


def forget_all(*, sure: bool) -> None:
    """Delete all that is kept, once the person has said so, and say what was deleted and what was not.

    Raises `UsageError` where nobody is there to be asked, `RunError` where something cannot be deleted.
    """
    own = tuple(_list_own())
    personal = [place for place in own if place.is_personal]
    if not personal:
        typer.echo("Nothing is kept.")
    elif not sure:
        if not sys.stdin.isatty():
            raise UsageError("nobody is there to be asked", remedy="Give --yes to delete without a question.")
        _show_places(personal)
        if not typer.confirm("Delete all this for good?"):
            typer.echo("Nothing was deleted.")
            return
    for place in personal:
        _delete(Path(place.path))
        typer.echo(f"deleted  {place.describe()}")
    for place in (*(place for place in own if not place.is_personal), *_list_traces()):
        typer.echo(f"left     {place.describe()} ({to_one_line(place.delete)})")
    typer.echo(BEYOND_REACH)


def _show_places(places: Iterable[Place]) -> None:
    for place in places:
        typer.echo(f"{place.describe()}\n  to delete: {to_one_line(strip_control_characters(place.delete))}\n")


def _list_traces() -> Iterator[Place]:
    """The traces in the current directory. Where else runs were written is not recorded."""
    holds = "all that a run showed a model: questions, statements and passages"
    return (_describe(path, holds, f"rm {path}") for path in sorted(Path().glob(TRACES)))


def _list_own() -> Iterator[Place]:
    homes = filter(Path.is_dir, dict.fromkeys((find_data_directory(), name_cache_directory())))
    for entry in [entry for home in homes for entry in sorted(home.iterdir())]:
        holds, delete = next((KINDS[name] for name in KINDS if fnmatchcase(entry.name, name)), (UNKNOWN, "rm"))
        if entry.name == "documents" and entry.is_dir():
            for folder in sorted(entry.iterdir()):
                is_own = _OWN_FOLDER.fullmatch(folder.name) and (folder / "files.sqlite").exists()
                told = f"{holds} in {_find_source(folder)}" if is_own else UNKNOWN
                yield _describe(folder, told, delete if is_own else f"rm -r {folder}")
        else:
            yield _describe(entry, holds, f"rm -r {entry}" if delete == "rm" else delete)


def _find_source(home: Path) -> str:
    """The folder whose documents these are, as an index of them says it."""
    for info in home.glob(f"index-*/{INFO_FILE}"):
        with suppress(OSError, msgspec.DecodeError, LookupError, TypeError):
            return str(msgspec.json.decode(info.read_bytes())["sources"][0])
    return "a folder that is not known any more"


def _describe(path: Path, holds: str, delete: str) -> Place:
    sizes = [file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return Place(str(path), holds, len(sizes), sum(sizes), delete)


def _delete(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        what = f"could not be deleted ({error.strerror})"
        raise RunError(what, where=str(path), remedy="What was deleted before it is gone.") from error
