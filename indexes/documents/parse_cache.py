"""What was read of a folder's files, kept in SQLite: an index is built from it without reading a file again.

A file is kept as soon as it was read, so that nothing is lost when reading is broken off. Several processes may use one
store; it may be deleted.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from indexes.corpora.corpus import Corpus
from indexes.documents.reading import FileStamp, ParsedDocument
from indexes.text.analysis import ANALYZER
from schemas.errors import RunError
from schemas.records import Passage

FORMAT = 1  # to be raised when files are cut in another way: then all are read again
PATIENCE = 600  # seconds that a process waits for another one, which may be building the index
_TABLE = "CREATE TABLE files (name TEXT PRIMARY KEY, size INT, mtime_ns INT, digest TEXT, reason TEXT, parsed BLOB)"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What is known of a file without looking into what was read."""

    stamp: FileStamp
    digest: str  # SHA-256 of its bytes


class ParseCache:
    """The files of one folder. Their names are as ids have them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)  # these are a person's own texts
            self._database = _open_or_recreate(path)
        except (OSError, sqlite3.Error) as error:
            raise _unusable_error(path, error) from error

    def __enter__(self) -> "ParseCache":
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        """Close it. What SQLite raised meanwhile (a full disk, say) becomes a `RunError`."""
        self._database.close()
        if isinstance(error, sqlite3.Error):
            raise _unusable_error(self.path, error) from error

    def known(self) -> dict[str, KnownFile]:
        """Every file that is kept, by name."""
        rows = self._database.execute("SELECT name, size, mtime_ns, digest FROM files ORDER BY name")
        return {name: KnownFile(FileStamp(size, mtime_ns), digest) for name, size, mtime_ns, digest in rows}

    def keep(self, name: str, known: KnownFile, parsed: ParsedDocument) -> None:
        """Keep what was read of a file, at once."""
        size, mtime_ns = known.stamp.size, known.stamp.mtime_ns
        row = (name, size, mtime_ns, known.digest, parsed.reason, msgspec.json.encode(parsed))
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", row)

    def restamp(self, name: str, stamp: FileStamp) -> None:
        """A file was written again with the same bytes."""
        row = (stamp.size, stamp.mtime_ns, name)
        self._database.execute("UPDATE files SET size = ?, mtime_ns = ? WHERE name = ?", row)

    def forget(self, names: Iterable[str]) -> None:
        """Files that are no longer there."""
        self._database.executemany("DELETE FROM files WHERE name = ?", [(name,) for name in names])

    def parsed(self, name: str) -> ParsedDocument:
        """What was read of a file; nothing for one that is not kept."""
        row = self._database.execute("SELECT parsed FROM files WHERE name = ?", (name,)).fetchone()
        return msgspec.json.decode(row[0], type=ParsedDocument) if row else ParsedDocument()

    def left_out(self) -> dict[str, str]:
        """The files that no passage could be made of, with the reasons."""
        return dict(self._database.execute("SELECT name, reason FROM files WHERE reason != '' ORDER BY name"))

    def documents(self) -> dict[str, str]:
        """The other files, with the digests of their bytes."""
        return dict(self._database.execute("SELECT name, digest FROM files WHERE reason = '' ORDER BY name"))

    def state(self) -> str:
        """A name for the passages that are kept: another one as soon as any document is another."""
        held = msgspec.json.encode((FORMAT, ANALYZER, self.documents()))
        return hashlib.sha256(held).hexdigest()[:16]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes the store meanwhile."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._database.execute("ROLLBACK")


class CachedCorpus(Corpus):
    """The same for a store: nothing is read from the files themselves."""

    def __init__(self, store: ParseCache, folder: Path) -> None:
        super().__init__((folder,), 0)
        self._store = store

    def __iter__(self) -> Iterator[tuple[Path, int, Passage | str]]:
        """File, number of the passage in it (from 1) and passage."""
        for name in self._store.documents():
            for number, passage in enumerate(self._store.parsed(name).passages, start=1):
                yield self.files[0] / name, number, passage


def _unusable_error(path: Path, error: Exception) -> RunError:
    remedy = "Set CONVAGENT_CACHE to a directory that can be written and has room."
    return RunError(f"cannot be used ({error})", where=str(path), remedy=remedy)


def _open_or_recreate(path: Path) -> sqlite3.Connection:
    """The database, made again where it is damaged or of another format."""
    try:
        return _open_checked(path)
    except sqlite3.OperationalError:  # locked for too long, or it cannot be written: it is not damaged
        raise
    except sqlite3.DatabaseError:
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).unlink()
        return _open_checked(path)


def _open_checked(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        if database.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("is damaged")
        if not _is_current(database):
            database.execute("BEGIN IMMEDIATE")
            if not _is_current(database):  # nobody else made it while this one waited
                database.execute("DROP TABLE IF EXISTS files")
                database.execute(_TABLE)
                database.execute(f"PRAGMA user_version = {FORMAT}")
            database.execute("COMMIT")
    except BaseException:
        database.close()
        raise
    return database


def _is_current(database: sqlite3.Connection) -> bool:
    return bool(database.execute("PRAGMA user_version").fetchone() == (FORMAT,))
