"""A folder of a person's own documents as a passage index, built when it is first opened and brought up to date later.

Everything made from a folder is in one directory of the cache: what was read from each file (`files.sqlite`), and
indexes named by what they hold (`index-...`). An index is never changed: when the folder changes, a new one with
another name is built. So two processes may open a folder at once, and an interrupted one leaves the old index alone.
"""

import hashlib
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.models.embedding.index_vectors import MAX_UNASKED, cache_vectors, embed_index
from indexes.documents.folder import Listing, list_documents
from indexes.documents.parse_cache import CachedCorpus, CachedFile, ParseCache
from indexes.documents.passage_ids import escape_name
from indexes.documents.readers import EXPECTED_SUFFIXES
from indexes.documents.reading import parse_document, read_contents, read_stamp
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.storage.private_files import make_private_directory, make_private_tree, take_from_others
from indexes.text.sentences import split_sentences
from schemas.errors import InvalidInputError, MissingError, RunError, list_with_limit
from schemas.progress import StageProgress
from schemas.records import Problem

MAX_INDEXES = 3  # kept of one folder: somebody else may still have the one before open
MAX_REASONS = 5  # reasons in the error that nothing could be read


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """What came of reading a folder. Files are named by their paths below it."""

    read: tuple[str, ...]  # read this time
    unchanged: tuple[str, ...]  # read before, and not changed since
    gone: tuple[str, ...]  # read before, and no longer there
    skipped: tuple[Problem, ...]  # left out, with the reasons
    notes: tuple[Problem, ...]  # oddities of the files read this time


@dataclass(frozen=True, slots=True)
class DocumentIndex:
    """A folder as an index. The ids of its passages are places in its files: `recipes/bread.md:12-18`."""

    index: PassageIndex
    reading: ReadingReport


def open_documents(folder: Path, cache: Path, embedder: Embedder | None, progress: StageProgress) -> DocumentIndex:
    """The index of a folder's documents (or of one document), up to date.

    Files that did not change are not read again, and no text is embedded twice. If several processes open a folder,
    one builds the index and the others wait for it. Raises `MissingError` if there is no such folder,
    `InvalidInputError` if nothing in it can be read, and `RunError` if the cache cannot be written.
    """
    listing = list_documents(folder.resolve())
    home = cache / "documents" / hashlib.sha256(bytes(folder.resolve())).hexdigest()[:16]
    _make_home(home)
    with ParseCache(home / "files.sqlite") as parse_cache:
        reading = _update_cache(parse_cache, listing, progress)
        if not parse_cache.list_documents():
            raise _make_unreadable_error(folder, reading)
        index = _open_or_build_index(parse_cache, home, listing.root)
    return DocumentIndex(_add_vectors(index, embedder, progress), reading)


def _make_home(home: Path) -> None:
    """The directory of what is made from a folder: nobody else's, as everything in it, which is a person's own text."""
    try:
        for directory in (home.parent, home):
            make_private_directory(directory)
            take_from_others(directory)
    except OSError as error:
        remedy = "Set CONVAGENT_CACHE to a directory that can be written and has room."
        raise RunError(f"cannot be made ({error.strerror})", where=str(home), remedy=remedy) from error


@dataclass(slots=True)
class _Outcomes:
    """Names of files, by what came of them."""

    read: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)


def _update_cache(parse_cache: ParseCache, listing: Listing, progress: StageProgress) -> ReadingReport:
    """Read new and changed files into the cache, one by one, and remove those that are gone."""
    cached = parse_cache.list_files()
    files = {escape_name(name): listing.root / name for name in listing.names}
    gone = tuple(name for name in cached if name not in files)
    parse_cache.remove_files(gone)
    found = _Outcomes(skipped=list(listing.skipped))
    with progress("reading", len(files)) as tick:
        for number, (name, path) in enumerate(files.items(), start=1):
            try:
                notes = _update_file(parse_cache, name, path, cached.get(name))
            except (MissingError, InvalidInputError) as error:
                parse_cache.remove_files([name])
                found.skipped.append(Problem(name, error.what))
            else:
                (found.unchanged if notes is None else found.read).append(name)
                found.notes += [Problem(name, note) for note in notes or ()]
            tick(number)
    reasons = parse_cache.list_skipped()
    skipped = sorted(
        [*found.skipped, *(Problem(name, reason) for name, reason in reasons.items())],
        key=lambda problem: problem.where,
    )
    read, unchanged = (tuple(name for name in names if name not in reasons) for names in (found.read, found.unchanged))
    return ReadingReport(read, unchanged, gone, tuple(skipped), tuple(found.notes))


def _update_file(parse_cache: ParseCache, name: str, path: Path, cached: CachedFile | None) -> tuple[str, ...] | None:
    """Read a file into the cache and return the notes on it; None if it did not change.

    Raises `MissingError` or `InvalidInputError` if it cannot be read. Neither says where: the caller knows the file.
    """
    if cached and read_stamp(path) == cached.stamp:
        return None
    contents = read_contents(path)
    if cached and contents.digest == cached.digest:
        parse_cache.update_stamp(name, contents.stamp)
        return None
    parsed = parse_document(path, name, contents.data, split_sentences)
    if contents.changed:
        parsed = replace(parsed, notes=(*parsed.notes, "changed while it was read; it will be read again"))
    parse_cache.save_file(name, CachedFile(contents.stamp, contents.digest), parsed)
    return parsed.notes


def _make_unreadable_error(folder: Path, reading: ReadingReport) -> InvalidInputError:
    """The error of a folder without documents, with the reasons."""
    reasons = "".join(f"\n  {reason}" for reason in list_with_limit(reading.skipped, MAX_REASONS))
    remedy = f"Put documents there, or name another folder. Expected {EXPECTED_SUFFIXES}."
    return InvalidInputError(f"holds no document that can be read{reasons}", where=str(folder), remedy=remedy)


def _open_or_build_index(parse_cache: ParseCache, home: Path, root: Path) -> PassageIndex:
    """The index of what is in the cache. It is built if there is none, or only a damaged one."""
    with parse_cache.lock_out_writers():
        directory = home / f"index-{parse_cache.compute_state()}"
        try:
            return PassageIndex(directory)
        except (MissingError, InvalidInputError):
            shutil.rmtree(directory, ignore_errors=True)
        for left in home.glob(".index-*"):  # by a process that was ended while it built one
            shutil.rmtree(left, ignore_errors=True)
        build_index(CachedCorpus(parse_cache, root), directory, skip_problems=False, progress=lambda: None)
        make_private_tree(directory)
        others = sorted(home.glob("index-*"), key=lambda path: path.stat().st_mtime)
        for old in others[:-MAX_INDEXES]:
            shutil.rmtree(old, ignore_errors=True)
        return PassageIndex(directory)


def _add_vectors(index: PassageIndex, embedder: Embedder | None, progress: StageProgress) -> PassageIndex:
    """The index with vectors of this model, which are made now if it has none and is small enough."""
    if embedder is None or has_vectors(index, embedder):
        return index
    embed_index(index.directory, cache_vectors(embedder), progress, MAX_UNASKED)
    make_private_tree(index.directory)
    return PassageIndex(index.directory)


def has_vectors(index: PassageIndex, embedder: Embedder) -> bool:
    """Whether an index has vectors of this model, undamaged."""
    try:
        return bool(index.vector_info and index.vector_info.digest == embedder.digest and index.vectors is not None)
    except (InvalidInputError, OSError):
        return False
