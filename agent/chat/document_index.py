"""A folder of a person's own documents as a passage index, made when it is first opened and kept up to date after.

All that is made of a folder is in one directory of the cache: what was read of each file (`files.sqlite`), and indexes
named by what they hold (`index-...`). An index is never changed: another state of the folder has another name, so two
processes may open a folder at once, and one that is broken off leaves what was there.
"""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from agent.models.embedding.index_vectors import MAX_UNASKED, cache_vectors, embed_index
from indexes.documents.folder import Listing, list_documents
from indexes.documents.parse_cache import CachedCorpus, KnownFile, ParseCache
from indexes.documents.passage_ids import escape_name
from indexes.documents.readers import EXPECTED_SUFFIXES
from indexes.documents.reading import parse_document, read_contents, read_stamp
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.text.sentences import split_sentences
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Problem

MAX_INDEXES = 3  # kept of one folder: somebody else may still have the one before open
MAX_REASONS = 5  # reasons in the error that nothing could be read
StageProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]  # what is done, of how many


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """What came of reading a folder: names of files below it, and what is to be said of them."""

    read: tuple[str, ...]  # now
    unchanged: tuple[str, ...]  # since they were read
    gone: tuple[str, ...]  # read once, and no longer there
    skipped: tuple[Problem, ...]  # left out, with the reasons
    notes: tuple[Problem, ...]  # oddities of what was read now


@dataclass(frozen=True, slots=True)
class DocumentIndex:
    """A folder that can be searched. The ids of its passages are places in its files: `recipes/bread.md:12-18`."""

    index: PassageIndex
    reading: ReadingReport


def open_documents(folder: Path, cache: Path, embedder: Embedder | None, progress: StageProgress) -> DocumentIndex:
    """The index of a folder's documents (or of one document), up to date.

    What was read before and did not change is not read again, and no text is embedded twice. Where several processes
    open a folder, one builds the index and the others wait for it. Raises `MissingError` where there is no such folder,
    `InvalidInputError` where nothing in it can be read, `RunError` where the cache cannot be written.
    """
    listing = list_documents(folder.resolve())
    home = cache / "documents" / hashlib.sha256(bytes(folder.resolve())).hexdigest()[:16]
    with ParseCache(home / "files.sqlite") as store:
        reading = _update_cache(store, listing, progress)
        if not store.documents():
            raise _nothing_readable(folder, reading)
        index = _open_or_build_index(store, home, listing.root)
    return DocumentIndex(_with_vectors(index, cache, embedder, progress), reading)


@dataclass(slots=True)
class _Outcomes:
    """Names of files by what became of them."""

    read: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)


def _update_cache(store: ParseCache, listing: Listing, progress: StageProgress) -> ReadingReport:
    """Read what is new or changed into the store, file by file, and forget what is gone."""
    known = store.known()
    files = {escape_name(name): listing.root / name for name in listing.names}
    gone = tuple(name for name in known if name not in files)
    store.forget(gone)
    found = _Outcomes(skipped=list(listing.skipped))
    with progress("reading", len(files)) as tick:
        for number, (name, path) in enumerate(files.items(), start=1):
            try:
                notes = _update_file(store, name, path, known.get(name))
            except (MissingError, InvalidInputError) as error:
                store.forget([name])
                found.skipped.append(Problem(name, error.what))
            else:
                (found.unchanged if notes is None else found.read).append(name)
                found.notes += [Problem(name, note) for note in notes or ()]
            tick(number)
    reasons = store.left_out()
    skipped = sorted(
        [*found.skipped, *(Problem(name, why) for name, why in reasons.items())], key=lambda one: one.where
    )
    read, unchanged = (tuple(name for name in names if name not in reasons) for names in (found.read, found.unchanged))
    return ReadingReport(read, unchanged, gone, tuple(skipped), tuple(found.notes))


def _update_file(store: ParseCache, name: str, path: Path, known: KnownFile | None) -> tuple[str, ...] | None:
    """Read a file, unless it is as it was (None); else what was odd about it.

    Raises `MissingError` or `InvalidInputError` where it cannot be read, without where: the name is known to be it.
    """
    if known and read_stamp(path) == known.stamp:
        return None
    contents = read_contents(path)
    if known and contents.digest == known.digest:
        store.restamp(name, contents.stamp)
        return None
    parsed = parse_document(path, name, contents.data, split_sentences)
    if contents.changed:
        parsed = replace(parsed, notes=(*parsed.notes, "changed while it was read; it will be read again"))
    store.keep(name, KnownFile(contents.stamp, contents.digest), parsed)
    return parsed.notes


def _nothing_readable(folder: Path, reading: ReadingReport) -> InvalidInputError:
    """The error of a folder without documents, with the reasons."""
    reasons = "".join(f"\n  {problem}" for problem in reading.skipped[:MAX_REASONS])
    more = f"\n  and {len(reading.skipped) - MAX_REASONS} more" if len(reading.skipped) > MAX_REASONS else ""
    remedy = f"Put documents there, or name another folder. Expected {EXPECTED_SUFFIXES}."
    return InvalidInputError(f"holds no document that can be read{reasons}{more}", where=str(folder), remedy=remedy)


def _open_or_build_index(store: ParseCache, home: Path, root: Path) -> PassageIndex:
    """The index of what is in the store: the one that is there, or a new one where there is none or it is damaged."""
    with store.alone():
        directory = home / f"index-{store.state()}"
        try:
            return PassageIndex(directory)
        except (MissingError, InvalidInputError):
            shutil.rmtree(directory, ignore_errors=True)
        for left in home.glob(".index-*"):  # by somebody who was ended while building
            shutil.rmtree(left, ignore_errors=True)
        build_index(CachedCorpus(store, root), directory, skip_problems=False, progress=lambda: None)
        others = sorted(home.glob("index-*"), key=lambda path: path.stat().st_mtime)
        for old in others[:-MAX_INDEXES]:
            shutil.rmtree(old, ignore_errors=True)
        return PassageIndex(directory)


def _with_vectors(index: PassageIndex, cache: Path, embedder: Embedder | None, progress: StageProgress) -> PassageIndex:
    """The index with vectors of this model, made now where it is small enough and has none."""
    if embedder is None or _has_vectors(index, embedder):
        return index
    embed_index(index.directory, cache_vectors(embedder), partial(progress, "embedding"), MAX_UNASKED)
    return PassageIndex(index.directory)


def _has_vectors(index: PassageIndex, embedder: Embedder) -> bool:
    try:
        return bool(index.vector_info and index.vector_info.digest == embedder.digest and index.vectors is not None)
    except (InvalidInputError, OSError):
        return False
