"""The documents that are asked while a program runs: what changes is read again, and vectors are made meanwhile.

Two threads of their own: one waits for the operating system to report changes, or looks for them where it cannot
(docs/adr/0008); the other makes vectors while nobody waits for an answer. Until they are there, documents are searched
by words.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import psutil

from indexes.documents.collection import Collection
from indexes.documents.document_index import ReadingReport, open_documents
from indexes.documents.reading import has_reader
from indexes.index_vectors import MAX_UNASKED, cache_vectors, embed_index, has_whole_vectors
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import HybridRetriever, open_retriever
from indexes.ranking.vectors import Embedder
from indexes.storage.directories import find_cache_directory
from schemas.errors import ConvagentError, InvalidInputError, MissingError, list_with_limit
from schemas.records import Plan, Problem

QUIET_SECONDS = 0.5  # without a change, after which a burst of changes is over
LONGEST_BURST_SECONDS = 3.0  # after which files are read even if more change
SHOWN_SECONDS = 1.0  # between two looks at how far reading is
END_SECONDS = 1.0  # that reading has to end when the program does
POLL_SECONDS = 2.0  # between two looks at a folder whose changes are not reported
LISTED = 3  # files of a kind that are named in one message
NETWORK_FILE_SYSTEMS = {"9p", "afpfs", "afs", "ceph", "cifs", "drvfs", "nfs", "nfs4", "smb2", "smb3", "smbfs"}
NETWORK_FILE_SYSTEMS |= {"glusterfs", "lustre", "vboxsf", "virtiofs", "webdav"}
WAIT_SECONDS = 0.2  # for somebody's answer, before it is looked whether the program ends
Listener = Callable[[str], object]
log = logging.getLogger("convagent")


class _GivenUpError(Exception):
    """The program ends, or the documents are others now: what is being done is given up."""


@contextmanager
def _run_meanwhile(
    name: str, work: Callable[[], object], end: Callable[[], object], seconds: float | None = None
) -> Iterator[None]:
    """Do some work in a thread of its own until the block ends, and wait so long for its end.

    The thread is a daemon, and a killed one leaves nothing behind.
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end()
        thread.join(seconds)


@dataclass(frozen=True, slots=True)
class SearchableCollection:
    collection: Collection
    retriever: HybridRetriever
    lacks_vectors: bool  # whether it is searched by words until they are made


class CurrentCollection:
    """A collection whose place another one can take, at once and as a whole, from any thread.

    Whoever answers uses one until the answer is done. With `words_first`, documents without vectors are searched by
    words, for somebody to make them meanwhile (`make_vectors_meanwhile`).
    """

    def __init__(
        self, collection: Collection, embedder: Embedder | None, plan: Plan, *, words_first: bool = False
    ) -> None:
        self.embedder, self._plan, self._words_first = embedder, plan, words_first
        self._turn = threading.Lock()  # of those who replace
        self.tell: Listener = log.info  # is told in a few words what became of the documents
        self.left_out: tuple[Problem, ...] = ()  # files of the folder, with the reasons, as of the last reading
        self.progress = ""  # of what is made meanwhile
        self.on_progress: Listener = bool  # is told of each change of it
        self.replaced, self.idle, self.all_read = threading.Event(), threading.Event(), threading.Event()
        self.idle.set()
        self.all_read.set()  # unless somebody is reading documents, before which vectors are not worth making
        self.replace(collection)

    @property
    def collection(self) -> Collection:
        return self.searchable.collection

    @contextmanager
    def use(self) -> Iterator[SearchableCollection]:
        """The collection for one answer. What is done meanwhile waits until the block ends."""
        self.idle.clear()
        try:
            yield self.searchable
        finally:
            self.idle.set()

    def replace(self, collection: Collection) -> None:
        """Let the next question be asked of this collection. Opening it may take a while, and holds nobody up."""
        with self._turn:
            self.searchable = self._open(collection, words_first=self._words_first)
        self.replaced.set()

    def add_vectors(self, before: Collection, embedded: Collection) -> None:
        """Let this one take the place of the same one without vectors, unless others took it already."""
        with self._turn:
            if self.collection is before:
                self.searchable = self._open(embedded, words_first=False)

    def show_progress(self, progress: str) -> None:
        self.progress = progress
        self.on_progress(progress)

    def _open(self, collection: Collection, *, words_first: bool) -> SearchableCollection:
        index, embedder = collection.index, self.embedder
        if collection.is_empty:
            retriever = HybridRetriever(index, rows=np.zeros(len(index), bool))
            return SearchableCollection(collection, retriever, lacks_vectors=False)
        may_wait = words_first and collection.is_folder
        lacks_vectors = bool(embedder and may_wait and not has_whole_vectors(index, embedder))
        retriever = open_retriever(index, None if lacks_vectors else embedder, self._plan)
        return SearchableCollection(collection, retriever, lacks_vectors)


@contextmanager
def make_vectors_meanwhile(current: CurrentCollection, embedder: Embedder | None) -> Iterator["VectorMaker | None"]:
    """Make the vectors that current collections lack, until the block ends."""
    if embedder is None:
        yield None
        return
    maker = VectorMaker(current, cache_vectors(embedder))
    with _run_meanwhile("embedding", maker.run, maker.end):
        yield maker


@dataclass(frozen=True, slots=True)
class VectorMaker:
    """Makes the vectors of whatever is the current collection, whenever it lacks them."""

    current: CurrentCollection
    embedder: Embedder
    ended: threading.Event = field(default_factory=threading.Event)
    _rests: threading.Event = field(default_factory=threading.Event)  # while there is nothing to make

    def run(self) -> None:
        """Wait for collections without vectors, until `end` is called."""
        while True:
            self._rests.set()
            self.current.replaced.wait()
            self._rests.clear()
            self.current.replaced.clear()
            if self.ended.is_set():
                return
            if self.current.searchable.lacks_vectors:
                self._make_vectors(self.current.collection)

    def wait_until_made(self, seconds: float) -> bool:
        """Wait for all vectors that are wanted, so long at most. Whether they are there, or could not be made."""
        if self.current.replaced.is_set():  # looked at first: it is cleared last
            return self.ended.wait(seconds)
        return self._rests.wait(seconds)

    def end(self) -> None:
        self.ended.set()
        self.current.replaced.set()

    def _make_vectors(self, collection: Collection) -> None:
        """Embed a collection, and let the next question be asked by meaning, too. What goes wrong is told."""
        directory = collection.index.directory

        @contextmanager
        def show_and_wait(_stage: str, total: int) -> Iterator[Callable[[int], None]]:
            def tick(done: int) -> None:
                self.current.show_progress(f"I search by words until all vectors are made: {done} of {total} passages")
                self._wait_for_quiet(collection)

            tick(0)
            yield tick

        try:
            if not embed_index(directory, self.embedder, show_and_wait, MAX_UNASKED):
                self._wait_for_quiet(collection)  # too many: those that are found get theirs then
            embedded = replace(collection, index=PassageIndex(directory))
        except _GivenUpError:
            return
        except ConvagentError as error:
            if self.current.collection is collection:
                self.current.tell(f"I go on searching by words: {error}")
            return
        finally:
            self.current.show_progress("")
        self.current.add_vectors(collection, embedded)

    def _wait_for_quiet(self, collection: Collection) -> None:
        """Wait until nobody is answered and all is read. Raises `_GivenUpError` where that is too late."""
        awaited = (self.current.idle, self.current.all_read)
        while not self.ended.is_set() and not all(event.wait(WAIT_SECONDS) for event in awaited):
            pass
        if self.ended.is_set() or self.current.collection is not collection:
            raise _GivenUpError


@contextmanager
def watch_documents(
    current: CurrentCollection, embedder: Embedder | None, *, follow_links: bool = False
) -> Iterator["DocumentWatcher"]:
    """Keep a folder's collection up to date until the block ends. An index that is no folder's is left as it is.

    What is read or built at the end is not waited for.
    """
    watcher = DocumentWatcher(current, embedder, Path(current.collection.source), follow_links)
    if not current.collection.is_folder:
        yield watcher
        return
    with _run_meanwhile("watching", watcher.run, watcher.ended.set, END_SECONDS):
        yield watcher


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
        self.has_ended = False
        try:
            reason = explain_polling(self._folder) or self.follow_until_ended(polling=False)
            if reason:
                self.current.tell(f"{reason}: I look for changed documents every {POLL_SECONDS:.0f} seconds.")
                reason = self.follow_until_ended(polling=True)
            if reason:
                self.refresh()  # at the start not all may have been read
                self.current.tell(f"{reason}: I notice changed documents only when I am started again.")
        finally:
            self.has_ended = True

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
        except _GivenUpError:
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
        named = {what: ", ".join(list_with_limit(names, LISTED, "and {} more")) for what, names in told.items()}
        if any(told.values()):
            self.current.tell("; ".join(f"{what}: {names}" for what, names in named.items() if names))
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
        looked, shown = time.monotonic(), ""

        def tick(done: int) -> None:
            nonlocal looked, shown
            if self.ended.is_set():
                raise _GivenUpError
            if time.monotonic() - looked > SHOWN_SECONDS:
                looked, shown = time.monotonic(), f"I am still {stage}: {done} of {total} documents"
                self.current.show_progress(shown)

        try:
            yield tick
        finally:
            if shown and self.current.progress == shown:  # not that of the vectors, which are made meanwhile
                self.current.show_progress("")


def explain_polling(folder: Path) -> str:
    """Why changes in a folder are not reported by the system: another machine makes them. Empty where they are."""
    try:
        mounts = [part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)]
    except OSError:  # the system does not say
        return ""
    kind = max(mounts, key=lambda part: len(part.mountpoint)).fstype.casefold() if mounts else ""
    is_remote = kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse.")
    return f"{folder} is on a network file system ({kind})" if is_remote else ""
