"""Watching a folder of documents while a program runs: what changes is read again, and the next question finds it.

One thread waits for the operating system to report changes, or looks for them where it cannot (docs/adr/0008).
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from indexes.documents.current_collection import CurrentCollection
from indexes.documents.document_index import ReadingReport, open_documents
from indexes.documents.readers import has_reader
from indexes.ranking.vectors import Embedder
from indexes.storage.directories import find_cache_directory
from schemas.errors import ConvagentError, InvalidInputError, MissingError, list_with_limit
from schemas.records import Problem

QUIET_SECONDS = 0.5  # without a change, after which a burst of changes is over
LONGEST_BURST_SECONDS = 3.0  # after which files are read even if more change
SHOWN_SECONDS = 1.0  # between two looks at how far reading is
END_SECONDS = 1.0  # that reading has to end when the program does
POLL_SECONDS = 2.0  # between two looks at a folder whose changes are not reported
LISTED = 3  # files of a kind that are named in one message
NETWORK_FILE_SYSTEMS = {"9p", "afpfs", "afs", "ceph", "cifs", "drvfs", "nfs", "nfs4", "smb2", "smb3", "smbfs"}
NETWORK_FILE_SYSTEMS |= {"glusterfs", "lustre", "vboxsf", "virtiofs", "webdav"}


class _WatchEndedError(Exception):
    """The program ends: what is being read is given up."""


@contextmanager
def watch_documents(
    current: CurrentCollection, embedder: Embedder | None, *, follow_links: bool = False
) -> Iterator["DocumentWatcher"]:
    """Keep a folder's collection up to date until the block ends. An index that is no folder's is left as it is.

    What is read or built at the end is not waited for: the thread is a daemon, and a killed one leaves nothing behind.
    """
    watcher = DocumentWatcher(current, embedder, Path(current.collection.source), follow_links)
    if not current.collection.is_folder:
        yield watcher
        return
    thread = threading.Thread(target=watcher.run, name="watching", daemon=True)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.ended.set()
        thread.join(END_SECONDS)
        watcher.has_ended = not thread.is_alive()


@dataclass(slots=True)
class DocumentWatcher:
    """Reads a folder again whenever it changes, and replaces the current collection."""

    current: CurrentCollection
    embedder: Embedder | None
    source: Path  # the folder, or a single document
    follow_links: bool = False  # also those that lead out of the folder
    ended: threading.Event = field(default_factory=threading.Event)
    has_ended: bool = True  # False where the thread still reads or builds after the end
    _folder: Path = field(init=False)
    has_begun: threading.Event = field(default_factory=threading.Event)  # once all changes from now on are noticed
    _left_out: frozenset[Problem] | None = None  # files, as of the last reading

    def __post_init__(self) -> None:
        """A single document is watched through its folder: programs save by replacing files."""
        self._folder = self.source if self.source.is_dir() else self.source.parent

    def run(self) -> None:
        """Watch until `ended` is set; by polling where nothing else can be had, which is said once."""
        reason = explain_polling(self._folder) or self.follow_until_ended(polling=False)
        if reason:
            self.current.tell(f"{reason}: I look for changed documents every {POLL_SECONDS:.0f} seconds.")
            reason = self.follow_until_ended(polling=True)
        if reason:
            self.refresh()  # at the start not all may have been read
            self.current.tell(f"{reason}: I notice changed documents only when I am started again.")

    def follow_until_ended(self, *, polling: bool) -> str:
        """Follow the folder, also where it goes away and comes back. Why that fails; "" once `ended` is set."""
        while not self.ended.is_set():
            try:
                self._follow(polling=polling)
            except FileNotFoundError:
                self.refresh()
                self.ended.wait(POLL_SECONDS)
            except (OSError, RuntimeError) as error:  # watchfiles raises both, for limits of the system
                return f"{self._folder} cannot be watched ({error})"
        return ""

    def _follow(self, *, polling: bool) -> None:
        """Read the folder once its watch has begun, then after each burst of changes, as long as it is there."""
        from watchfiles import watch

        identity, is_first = self._folder.stat().st_ino, True
        reports = watch(
            self._folder,
            watch_filter=None,
            debounce=int(LONGEST_BURST_SECONDS * 1000),
            step=int(QUIET_SECONDS * 1000),
            stop_event=self.ended,
            rust_timeout=int(QUIET_SECONDS * 1000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=polling or None,  # None: unless the environment says so
            poll_delay_ms=int(POLL_SECONDS * 1000),
            recursive=self._folder == self.source,
            ignore_permission_denied=True,
        )
        for changes in reports:  # the first of them says that the watch has begun
            if not self._folder.exists() or self._folder.stat().st_ino != identity:
                break
            if is_first or any(self.is_relevant(Path(each)) for _, each in changes):
                self.refresh()
                self.has_begun.set()
            is_first = False
        if not self.ended.is_set():
            self.refresh()

    def is_relevant(self, path: Path) -> bool:
        if self._folder != self.source:
            return path == self.source
        hidden = any(part.startswith(".") for part in path.relative_to(self._folder).parts)
        return not hidden and (has_reader(path) or not path.is_file())

    def refresh(self) -> None:
        """Read what changed, and let the next question be asked of it. What came of it is told."""
        before = self.current.collection
        self.current.all_read.clear()
        try:
            cache, count = find_cache_directory(), self._count_until_ended
            documents = open_documents(self.source, cache, self.embedder, count, follow_links=self.follow_links)
        except _WatchEndedError:
            return
        except (MissingError, InvalidInputError) as error:
            self.current.left_out = ()
            if not before.is_empty:
                self.current.replace(replace(before, is_empty=True))
                self.current.tell(str(error))
        except ConvagentError as error:
            self.current.tell(f"changed documents could not be read: {error}")
        else:
            if before.is_empty or documents.index.directory != before.index.directory:
                self.current.replace(replace(before, index=documents.index, is_empty=False))
            self.current.left_out = documents.reading.skipped
            self._tell_reading(documents.reading)
        finally:
            self.current.all_read.set()

    def _tell_reading(self, reading: ReadingReport) -> None:
        """Tell what was read this time and what is gone, with the files that are newly left out."""
        unknown = set(reading.new)
        again = [name for name in reading.read if name not in unknown]
        told = {"new": reading.new, "read again": again, "gone": reading.gone}
        if parts := [f"{what}: {_name_documents(names)}" for what, names in told.items() if names]:
            self.current.tell("; ".join(parts))
        left_out = frozenset(reading.skipped)
        new = sorted(left_out - (left_out if self._left_out is None else self._left_out), key=str)
        for line in list_with_limit(new, LISTED):
            self.current.tell(f"left out: {line}")
        self._left_out = left_out

    @contextmanager
    def _count_until_ended(self, stage: str, total: int) -> Iterator[Callable[[int], None]]:
        """A `StageProgress` that is shown beside the question where it takes long, and gives up once the program ends.

        Every file is ticked: only some of it is shown, for drawing takes time.
        """
        began = shown = time.monotonic()

        def tick(done: int) -> None:
            nonlocal shown
            if self.ended.is_set():
                raise _WatchEndedError
            if time.monotonic() - shown > SHOWN_SECONDS:
                shown = time.monotonic()
                self.current.show_progress(f"I am still {stage}: {done} of {total} documents")

        try:
            yield tick
        finally:
            if shown > began:
                self.current.show_progress("")


def _name_documents(names: Sequence[str]) -> str:
    return ", ".join(list_with_limit(names, LISTED, "and {} more"))


def explain_polling(folder: Path) -> str:
    """Why changes in a folder are not reported by the system: another machine makes them. Empty where they are."""
    try:
        mounts = [part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)]
    except OSError:  # the system does not say
        return ""
    kind = max(mounts, key=lambda part: len(part.mountpoint)).fstype.casefold() if mounts else ""
    is_remote = kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse.")
    return f"{folder} is on a network file system ({kind})" if is_remote else ""
