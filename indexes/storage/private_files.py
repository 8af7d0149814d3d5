"""Files and directories for their owner alone, from their first byte on, whatever the umask."""

import os
from contextlib import suppress
from pathlib import Path

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
    """Take a directory and all that is in it from others."""
    for path in (directory, *directory.rglob("*")):
        take_from_others(path)


def take_from_others(path: Path) -> None:
    """Leave rights to the owner alone. What belongs to somebody else stays as it is."""
    try:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            path.chmod(mode & 0o700)
    except OSError:  # gone meanwhile, or somebody else's
        return
