"""Files and directories that appear whole or not at all, at whatever moment a process is ended.

What is being made stands beside its place under a name of its own, `.NAME.0123abcd.tmp`, held by a lock of the process
that makes it. Locks end with their process: what nobody holds was left behind, and whoever makes the same thing next
clears it away. (A process id in the name would not do: in another container, or on another machine that has the same
directory, that id is somebody else's.)
"""

import glob
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex

from indexes.storage.directories import make_private_file


def write_file_atomically(target: Path, write: Callable[[Path], object], *, private: bool = False) -> None:
    """A file that `write` writes, in its place whole or not at all. Raises `OSError` where it cannot be.

    The old contents stay until the new ones are on the disk. A private file is for its owner alone.
    """
    with _locked_temporary(target, make_private_file if private else Path.touch) as temporary:
        write(temporary)
        sync_to_disk(temporary)
        temporary.replace(target)
    sync_to_disk(target.parent)


@contextmanager
def replace_directory(target: Path) -> Iterator[Path]:
    """An empty directory that takes the place of `target` where the block ends well, and is gone where it does not."""
    target = target.resolve()
    with _locked_temporary(target, Path.mkdir) as made:
        yield made
        for file in made.iterdir():
            sync_to_disk(file)
        sync_to_disk(made)
        _swap_directory(made, target)


def scratch_directory(target: Path) -> AbstractContextManager[Path]:
    """An empty directory beside `target` for what is needed to make it, gone at the end."""
    return _locked_temporary(target, Path.mkdir)


def resolve_replaced(target: Path) -> Path:
    """The directory `target`, or what it was before where a process was ended while it was replaced."""
    return target if target.exists() else next(iter(_siblings(target.resolve(), "old")), target)


def sync_to_disk(path: Path) -> None:
    """Hand a file, or the names in a directory, to the disk: a rename is safe only when both were."""
    with suppress(OSError) if path.is_dir() else nullcontext():  # some file systems cannot for directories
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def lock_descriptor(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file or directory itself, until it is closed or its process ends. False where another holds it.

    Raises `OSError` where there are no such locks.
    """
    import filelock

    return filelock.lock_descriptor(descriptor, blocking=wait)


@contextmanager
def hold_directory(directory: Path) -> Iterator[bool]:
    """Whether a directory is ours until the block ends, and nobody else holds it; True where it cannot be locked."""
    is_ours, descriptor = True, None
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        is_ours = lock_descriptor(descriptor, wait=False)
    try:
        yield is_ours
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _swap_directory(made: Path, target: Path) -> None:
    """Put a directory where another may be.

    Directories cannot be replaced in one step by ordinary means (Linux alone can exchange two, and not on all of its
    file systems), so there is a moment with nothing in place. Whoever is ended then leaves the old one whole beside it,
    where `resolve_replaced` finds it: what is called `.old` is always whole, and used only while nothing is in place.
    """
    old = target.with_name(_temporary_name(target, "old"))
    if target.exists():
        _delete_old(target)
        target.rename(old)
    try:
        made.rename(target)
    except OSError:
        with suppress(OSError):
            old.rename(target)
        raise
    sync_to_disk(target.parent)
    _delete_old(target)


def _delete_old(target: Path) -> None:
    for old in _siblings(target, "old"):
        with suppress(OSError):
            _remove(old.rename(target.with_name(_temporary_name(target, "tmp"))))


@contextmanager
def _locked_temporary(target: Path, create: Callable[[Path], None]) -> Iterator[Path]:
    """A new file or directory beside `target`, locked; gone at the end unless it was given another name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in _siblings(target, "tmp"):
        if (abandoned := _lock(left, wait=False)) is not None:
            _remove(left)
            os.close(abandoned)
    temporary, lock = _create_locked(target, create)
    try:
        yield temporary
    finally:
        _remove(temporary)
        if lock is not None:
            os.close(lock)


def _create_locked(target: Path, create: Callable[[Path], None]) -> tuple[Path, int | None]:
    while True:
        temporary = target.with_name(_temporary_name(target, "tmp"))
        create(temporary)
        lock = _lock(temporary, wait=True)
        if temporary.exists():
            return temporary, lock
        if lock is not None:  # somebody cleared it away between its making and its lock
            os.close(lock)


def _lock(path: Path, *, wait: bool) -> int | None:
    """A descriptor that holds the path until it is closed; None where somebody else does, or nothing can be locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    except OSError:
        return None
    try:
        if lock_descriptor(descriptor, wait=wait):
            return descriptor
    except OSError:  # a file system, or a system, without such locks
        pass
    os.close(descriptor)
    return None


def _temporary_name(target: Path, kind: str) -> str:
    return f".{target.name}.{token_hex(4)}.{kind}"


def _siblings(target: Path, kind: str) -> list[Path]:
    return list(target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}.{kind}"))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
