"""Watching a folder of documents while a program runs: what changes is read again, and the next question finds it.

One thread looks at the stamps of its files, on whatever file system they are (docs/adr/0008).
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from indexes.documents.current_collection import CurrentCollection
from indexes.documents.document_index import ReadingReport, open_documents
from indexes.documents.folder import list_documents
from indexes.documents.reading import FileStamp, read_stamp
from indexes.ranking.vectors import Embedder
from indexes.storage.directories import find_cache_directory
from schemas.errors import ConvagentError, InvalidInputError, MissingError, list_with_limit
from schemas.records import Problem

QUIET_SECONDS = 0.5  # without a change, after which a burst of changes is over
LONGEST_BURST_SECONDS = 3.0  # after which files are read even if more change
SHOWN_SECONDS = 1.0  # between two looks at how far reading is
END_SECONDS = 1.0  # that reading has to end when the program does
LOOK_SECONDS = 1.0  # between two looks at a folder, at least
LOOKING_SHARE = 0.02  # of the time that is spent looking, where that takes long
LISTED = 3  # files of a kind that are named in one message
Snapshot = Mapping[str, FileStamp | None]  # the documents by their names; None for one that just went away


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
    has_begun: threading.Event = field(default_factory=threading.Event)  # once all changes from now on are noticed
    _left_out: frozenset[Problem] | None = None  # files, as of the last reading

    def run(self) -> None:
        """Read what there is, and again after each burst of changes, until `ended` is set."""
        read: Snapshot | None = None
        while not self.ended.is_set():
            began = time.monotonic()
            found = self._look()
            took = time.monotonic() - began
            if found != read:
                read = found if read is None else self._wait_for_quiet(found)
                self.refresh()
            self.has_begun.set()
            self.ended.wait(max(LOOK_SECONDS, took / LOOKING_SHARE))

    def _look(self) -> Snapshot:
        """The documents as they are now; none where the folder is gone."""
        try:
            listing = list_documents(self.source.resolve(), follow_links=self.follow_links)
        except (MissingError, InvalidInputError):
            return {}
        found: dict[str, FileStamp | None] = {}
        for name in listing.names:
            found[name] = None
            with suppress(MissingError):
                found[name] = read_stamp(listing.root / name)
        return found

    def _wait_for_quiet(self, found: Snapshot) -> Snapshot:
        """The documents once a burst of changes is over, or has lasted long."""
        until = time.monotonic() + LONGEST_BURST_SECONDS
        while not self.ended.wait(QUIET_SECONDS) and (now := self._look()) != found and time.monotonic() < until:
            found = now
        return found

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
