"""A folder of a person's own documents as a passage index, built when it is first opened and brought up to date later.

Everything made from a folder is in one directory of the cache: what was read from each file (`files.sqlite`), and
indexes named by what they hold (`index-...`). An index is never changed: when the folder changes, a new one with
another name is built. So two processes may open a folder at once, and an interrupted one leaves the old index alone.
"""

import hashlib
import math
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISDIR

from indexes.documents.chunking import escape_name
from indexes.documents.isolation.process import ReadingProcess
from indexes.documents.parse_cache import CACHE_REMEDY, CachedCorpus, ParseCache
from indexes.documents.reading import EXPECTED_SUFFIXES, FileVersion, has_reader, read_contents, read_stamp
from indexes.index_builder import build_index
from indexes.index_vectors import MAX_UNASKED, StageProgress, cache_vectors, embed_index, has_whole_vectors
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.storage.directories import make_private_directory, make_private_tree, take_from_others
from indexes.storage.files import explain_failed_writing
from schemas.errors import InvalidInputError, MissingError, list_with_limit
from schemas.records import Problem

FEW = 50  # files that nobody waits for long: they are always read
MAX_INDEXES = 3  # kept of one folder: somebody else may still have the one before open
MAX_REASONS = 5  # reasons in the error that nothing could be read
_LEADS_OUT = "is a link that leads out of the folder"


def list_documents(folder: Path, *, follow_links: bool = False) -> tuple[dict[str, Path], list[Problem]]:
    """The documents of a folder and its subfolders, or a single one, by their names as ids have them; what is left out.

    Hidden files and folders are skipped. Links that lead out of the folder are followed only if `follow_links`; a
    folder that is reached twice is read once.
    Raises `MissingError` where there is no such folder or file, `InvalidInputError` for a file that is no document.
    """
    if folder.is_dir():
        found = list(_walk(folder, follow_links=follow_links))
        names = sorted(name for name, reason in found if not reason)
        skipped = [Problem(escape_name(name), reason) for name, reason in found if reason not in ("", _LEADS_OUT)]
        if links := [name for name, reason in found if reason == _LEADS_OUT]:
            others = f", as {'does' if len(links) == 2 else 'do'} {len(links) - 1} more" if len(links) > 1 else ""
            what = f"{_LEADS_OUT} and is not followed{others}; --follow-links reads them"
            skipped.append(Problem(escape_name(links[0]), what))
        return {escape_name(name): folder / name for name in names}, skipped
    if not folder.exists():
        raise MissingError("no such folder or file", where=str(folder))
    if not has_reader(folder):
        remedy = f"Expected {EXPECTED_SUFFIXES}."
        raise InvalidInputError("is no document that can be read", where=str(folder), remedy=remedy)
    return {escape_name(folder.name): folder}, []


def _walk(folder: Path, *, follow_links: bool) -> Iterator[tuple[str, str]]:
    """The files below a folder by their paths there, each with the reason why it is left out; "" for documents."""
    root, unread, seen = folder.resolve(), list[OSError](), {_identify(folder.stat())}
    for directory, folders, files in os.walk(folder, followlinks=True, onerror=unread.append):
        names = sorted(name for name in (*folders, *files) if not name.startswith("."))
        folders.clear()  # but for those that are to be entered
        for path in (Path(directory) / name for name in names):
            name = path.relative_to(folder).as_posix()
            try:
                found, leads_out = path.stat(), path.is_symlink() and not path.resolve().is_relative_to(root)
            except (OSError, RuntimeError) as error:  # the second of a loop of links
                is_lost, why = isinstance(error, FileNotFoundError), getattr(error, "strerror", error)
                yield name, "is a link to nothing" if is_lost and path.is_symlink() else f"cannot be read ({why})"
                continue
            if leads_out and not follow_links:
                yield name, _LEADS_OUT
            elif not S_ISDIR(found.st_mode):
                yield name, "" if has_reader(path) else f"is of no kind that can be read ({EXPECTED_SUFFIXES})"
            elif (identity := _identify(found)) not in seen:
                seen.add(identity)
                folders.append(path.name)
    for closed in unread:
        yield Path(closed.filename).relative_to(folder).as_posix(), f"cannot be read ({closed.strerror})"


def _identify(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """What came of reading a folder. Files are named by their paths below it."""

    read: tuple[str, ...]  # read this time
    new: tuple[str, ...]  # those of them that had not been read before
    unchanged: tuple[str, ...]  # read before, and not changed since
    gone: tuple[str, ...]  # read before, and no longer there
    skipped: tuple[Problem, ...]  # left out, with the reasons
    notes: tuple[Problem, ...]  # oddities of the files read this time
    waiting: int = 0  # new and changed files that there was no time for: they are as they were


@dataclass(frozen=True, slots=True)
class DocumentIndex:
    """A folder as an index. The ids of its passages are places in its files: `recipes/bread.md:12-18`."""

    index: PassageIndex
    reading: ReadingReport


def open_documents(
    folder: Path,
    cache: Path,
    embedder: Embedder | None,
    progress: StageProgress,
    seconds: float = math.inf,
    *,
    follow_links: bool = False,
) -> DocumentIndex:
    """The index of a folder's documents (or of one document), up to date.

    Files that did not change are not read again, and no text is embedded twice. With a limit of `seconds` files are
    read for about as long, the newest first. If several processes open a folder, one builds the index and the
    others wait for it. Links out of the folder are followed only if `follow_links`. Raises `MissingError` if there
    is no such folder, `InvalidInputError` if nothing in it can be read, and `RunError` if the cache cannot be
    written or the process that reads cannot be started.
    """
    source = folder.resolve()
    files, left_out = list_documents(source, follow_links=follow_links)
    home = cache / "documents" / hashlib.sha256(bytes(source)).hexdigest()[:16]
    with explain_failed_writing(home, CACHE_REMEDY):
        for directory in (home.parent, home):  # nobody else's: what is in it is a person's own text
            make_private_directory(directory)
            take_from_others(directory)
    with ParseCache(home / "files.sqlite") as parse_cache:
        reading = _update_cache(parse_cache, files, left_out, progress, seconds)
        if not parse_cache.list_documents():
            reasons = "".join(f"\n  {reason}" for reason in list_with_limit(reading.skipped, MAX_REASONS))
            remedy = f"Put documents there, or name another folder. Expected {EXPECTED_SUFFIXES}."
            raise InvalidInputError(f"holds no document that can be read{reasons}", where=str(folder), remedy=remedy)
        index = _open_or_build_index(parse_cache, home, source if source.is_dir() else source.parent, progress)
    if embedder is not None and not has_whole_vectors(index, embedder):
        embed_index(index.directory, cache_vectors(embedder), progress, MAX_UNASKED)
        make_private_tree(index.directory)
        index = PassageIndex(index.directory)
    return DocumentIndex(index, reading)


def _update_cache(
    parse_cache: ParseCache, files: dict[str, Path], left_out: list[Problem], progress: StageProgress, seconds: float
) -> ReadingReport:
    """Read new and changed files into the cache, one by one, and remove those that are gone.

    After so many seconds from the first, whose reader was loaded by then, the others wait, unless they are few.
    """
    end, waiting = math.inf, 0
    cached = parse_cache.list_files()
    if seconds < math.inf:
        files = dict(sorted(files.items(), key=lambda file: -_read_time(file[1])))
    gone = tuple(name for name in cached if name not in files)
    parse_cache.remove_files(gone)
    skipped, notes_on = [*left_out], dict[str, Sequence[str] | None]()  # None: unchanged
    with progress("reading", len(files)) as tick, ReadingProcess() as reader:
        for number, (name, path) in enumerate(files.items(), start=1):
            known = cached.get(name)
            try:
                if _is_unchanged(path, known):
                    notes_on[name] = None
                elif time.monotonic() > end and len(files) - number >= FEW and parse_cache.list_documents():
                    waiting += 1
                    continue
                else:
                    notes_on[name] = _update_file(parse_cache, reader, name, path, known)
            except (MissingError, InvalidInputError) as error:
                parse_cache.remove_files([name])
                skipped.append(Problem(name, error.what))
            tick(number)
            if notes_on.get(name) is not None:
                end = min(end, time.monotonic() + seconds)
    reasons = parse_cache.list_skipped()
    skipped += [Problem(name, reason) for name, reason in reasons.items()]
    told = {name: notes for name, notes in notes_on.items() if name not in reasons}
    read = tuple(name for name, notes in told.items() if notes is not None)
    return ReadingReport(
        read,
        tuple(name for name in read if name not in cached),
        tuple(name for name, notes in told.items() if notes is None),
        gone,
        tuple(sorted(skipped, key=lambda problem: problem.where)),
        tuple(Problem(name, note) for name, notes in notes_on.items() for note in notes or ()),
        waiting,
    )


def _is_unchanged(path: Path, cached: FileVersion | None) -> bool:
    """Whether a file is as it was, by its stamp. Raises `MissingError` where it is gone."""
    return cached is not None and cached.is_settled and read_stamp(path) == cached.stamp


def _read_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _update_file(
    parse_cache: ParseCache, reader: ReadingProcess, name: str, path: Path, cached: FileVersion | None
) -> tuple[str, ...] | None:
    """Read a file into the cache and return the notes on it; None if it has the same bytes as before.

    Raises `MissingError` or `InvalidInputError` if it cannot be read. Neither says where: the caller knows the file.
    """
    version, data, has_changed = read_contents(path)
    if cached and version.digest == cached.digest:
        parse_cache.update_stamp(name, version)
        return None
    parsed = reader.parse_document(path, name, data)
    if has_changed:
        parsed = replace(parsed, notes=(*parsed.notes, "changed while it was read; it will be read again"))
    parse_cache.save_file(name, version, parsed)
    return parsed.notes


def _open_or_build_index(parse_cache: ParseCache, home: Path, root: Path, progress: StageProgress) -> PassageIndex:
    """The index of what is in the cache. It is built if there is none, or only a damaged one."""
    with parse_cache.lock_out_writers():
        directory = home / f"index-{parse_cache.compute_state()}"
        try:
            return PassageIndex(directory)
        except (MissingError, InvalidInputError):
            shutil.rmtree(directory, ignore_errors=True)
        for left in home.glob(".index-*"):  # by a process that was ended while it built one
            shutil.rmtree(left, ignore_errors=True)
        corpus = CachedCorpus(parse_cache, root)
        with progress("indexing", len(corpus.documents)) as tick:
            build_index(corpus, directory, skip_problems=False, progress=lambda: tick(corpus.documents_read))
        make_private_tree(directory)
        others = sorted(home.glob("index-*"), key=lambda path: path.stat().st_mtime)
        for old in others[:-MAX_INDEXES]:
            shutil.rmtree(old, ignore_errors=True)
        return PassageIndex(directory)
