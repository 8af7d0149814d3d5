"""The user's directories, for caches and for data, and files for their owner alone, whatever the umask."""

import atexit
import logging
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

log = logging.getLogger("convagent")


def find_cache_directory() -> Path:
    """Where caches are kept: as `name_cache_directory` says.

    Where that cannot be written, which is said once, a directory that is gone when the program ends.
    """
    named = name_cache_directory()
    return named if is_writable(named) else _make_stand_in(named)


def name_cache_directory() -> Path:
    """Where caches should be: `CONVAGENT_CACHE`, or else the user's cache directory."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("CONVAGENT_CACHE") or user_cache_path("convagent"))


def is_writable(directory: Path) -> bool:
    try:
        existing = next(each for each in (directory, *directory.absolute().parents) if each.exists())
    except OSError:  # a name that is too long, a loop of links
        return False
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


@cache
def _make_stand_in(wanted: Path) -> Path:
    log.warning("%s cannot be written: what is made is kept until the program ends", wanted)
    made = Path(tempfile.mkdtemp(prefix="convagent-cache-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def find_data_directory() -> Path:
    """Where the user's own data are: `CONVAGENT_DATA`, or else the user's data directory."""
    from platformdirs import user_data_path

    return Path(os.environ.get("CONVAGENT_DATA") or user_data_path("convagent"))


FILE_MODE, DIRECTORY_MODE = 0o600, 0o700


def make_private_directory(path: Path) -> None:
    """A directory that only its owner may enter, if it is not there yet. One that is there keeps its permissions."""
    path.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)


def make_private_file(path: Path) -> None:
    """An empty file for its owner alone, or the one that is there, of which others lose their rights.

    What SQLite makes beside such a file has the same permissions. One that is there is not opened: closing it would
    end the locks that SQLite holds on it in this process. Raises `OSError` where it cannot be made.
    """
    if path.is_dir():
        return
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, FILE_MODE))
    take_from_others(path)


def make_private_tree(directory: Path) -> None:
    for path in (directory, *directory.rglob("*")):
        take_from_others(path)


def take_from_others(path: Path) -> None:
    """Leave rights to the owner alone. What belongs to somebody else stays as it is."""
    with suppress(OSError):  # gone meanwhile, or somebody else's
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            path.chmod(mode & 0o700)
