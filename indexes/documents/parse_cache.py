"""A cache of what was read from a folder's files, in SQLite, so that an index is built without reading them again.

A file is saved as soon as it was read, so that nothing is lost when reading is interrupted. Several processes may use
one cache, and it may be deleted at any time.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version as find_version
from pathlib import Path

import msgspec

from indexes.corpora.corpus import Corpus, Item
from indexes.documents.formats.pages import is_ocr_installed
from indexes.documents.reading import FileVersion, ParsedDocument
from indexes.storage.cache import open_database
from indexes.storage.directories import make_private_directory, make_private_file
from indexes.text.analysis import ANALYZER
from schemas.errors import RunError

_CUT = "15"  # to be raised when files are cut differently: then all are read again
WAIT_SECONDS = 600  # for another process, which may be building the index
CACHE_REMEDY = "Set CONVAGENT_CACHE to a directory that can be written and has room."
_TABLE = (
    "CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, version BLOB, digest TEXT, reason TEXT, "
    "incomplete_by TEXT, language TEXT, parsed BLOB)"
)


class ParseCache:
    """The files of one folder, by their names as ids have them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            make_private_directory(path.parent)
            make_private_file(path)  # these are a person's own texts
            self._database = _open_or_recreate(path)
            # read again what was cut differently, broke other readers, or had pictures that these could not read
            current, stale = (_CUT, f"{_CUT} {describe_readers()}"), "FROM files WHERE incomplete_by NOT IN (?, ?)"
            if self._database.execute(f"SELECT 1 {stale}", current).fetchone():  # else no lock is needed
                self._database.execute(f"DELETE {stale}", current)
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            raise _unusable_error(path, error) from error

    def __enter__(self) -> "ParseCache":
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        """Close the cache. An error of SQLite, such as a full disk, becomes a `RunError`."""
        self._database.close()
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):
            raise _unusable_error(self.path, error) from error

    def list_files(self) -> dict[str, FileVersion]:
        rows = self._database.execute("SELECT name, version FROM files ORDER BY name")
        return {name: msgspec.json.decode(version, type=FileVersion) for name, version in rows}

    def save_file(self, name: str, version: FileVersion, parsed: ParsedDocument) -> None:
        incomplete_by = f"{_CUT} {describe_readers()}" if parsed.broke_reader or parsed.lacks_ocr else _CUT
        found = (parsed.reason, incomplete_by, parsed.language, msgspec.json.encode(parsed))
        row = (name, msgspec.json.encode(version), version.digest, *found)
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def update_stamp(self, name: str, version: FileVersion) -> None:
        """Note that a file was written again with the same bytes, or is known to have them."""
        self._database.execute("UPDATE files SET version = ? WHERE name = ?", (msgspec.json.encode(version), name))

    def remove_files(self, names: Iterable[str]) -> None:
        self._database.executemany("DELETE FROM files WHERE name = ?", [(name,) for name in names])

    def load_file(self, name: str) -> ParsedDocument:
        """What was read from a file; an empty document if it is not in the cache."""
        row = self._database.execute("SELECT parsed FROM files WHERE name = ?", (name,)).fetchone()
        try:
            return msgspec.json.decode(row[0], type=ParsedDocument) if row else ParsedDocument()
        except (msgspec.DecodeError, TypeError, ValueError) as error:
            what = f"is damaged: what was read of {name} cannot be read ({error})"
            raise RunError(what, where=str(self.path), remedy="Delete it: it is made anew.") from error

    def list_skipped(self) -> dict[str, str]:
        """The files without passages, with the reasons."""
        return dict(self._database.execute("SELECT name, reason FROM files WHERE reason != '' ORDER BY name"))

    def list_documents(self) -> dict[str, str]:
        """The files with passages, with the digests of their bytes."""
        return dict(self._database.execute("SELECT name, digest FROM files WHERE reason = '' ORDER BY name"))

    def list_languages(self) -> tuple[str, ...]:
        rows = self._database.execute("SELECT DISTINCT language FROM files WHERE reason = '' ORDER BY language")
        return tuple(language for (language,) in rows)

    def compute_state(self) -> str:
        """A name for all passages in the cache, which changes when any document does."""
        state = msgspec.json.encode((_CUT, ANALYZER, self.list_documents()))
        return hashlib.sha256(state).hexdigest()[:16]

    @contextmanager
    def lock_out_writers(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._database.execute("ROLLBACK")


class CachedCorpus(Corpus):
    """The passages of a parse cache as a corpus; the files themselves are not read."""

    def __init__(self, cache: ParseCache, folder: Path) -> None:
        super().__init__((folder,), 0, languages=cache.list_languages())
        self._cache = cache
        self.documents, self.documents_read = tuple(cache.list_documents()), 0

    def __iter__(self) -> Iterator[Item]:
        """File, number of the passage in it (from 1), and passage."""
        for done, name in enumerate(self.documents):
            self.documents_read = done
            for number, passage in enumerate(self._cache.load_file(name).passages, start=1):
                yield self.files[0] / name, number, passage
        self.documents_read = len(self.documents)


def describe_readers() -> str:
    """What decides how much of a file can be read: the version of this program, and whether it reads pictures."""
    return f"{find_version('convagent')}{' with Tesseract' if is_ocr_installed() else ''}"


def _unusable_error(path: Path, error: Exception) -> RunError:
    return RunError(f"cannot be used ({error})", where=str(path), remedy=CACHE_REMEDY)


def _open_or_recreate(path: Path) -> sqlite3.Connection:
    """The database; one that is damaged is replaced by an empty one."""
    try:
        database = open_database(path, WAIT_SECONDS, None, _TABLE)
        if database.execute("PRAGMA quick_check").fetchone() == ("ok",):
            return database
        database.close()
    except sqlite3.OperationalError:  # locked for too long, or not writable: it is not damaged
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        pass
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    make_private_file(path)
    return open_database(path, WAIT_SECONDS, None, _TABLE)
