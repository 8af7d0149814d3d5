"""A cache of computed values in one SQLite file, by the hash of everything that a value depends on.

Several threads and processes may use a file, and it may be deleted at any time. It is a convenience: where it is busy
or damaged, or the disk is full, it finds nothing and saves nothing. Each value has its checksum behind it: one that is
not what was saved is not found. `open_database` opens any SQLite file that several processes use at once.
"""

import logging
import sqlite3
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Literal

from indexes.storage.directories import make_private_directory, make_private_file

MAX_BYTES = 1 << 30
WAIT_SECONDS = 30.0  # for another process that is writing
CHECKSUM_BYTES = 4  # behind each value
DROPPED_SHARE = 4  # a full cache drops its oldest quarter
_TABLE = "CREATE TABLE IF NOT EXISTS kept (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
_SELECT = "SELECT key, value FROM kept WHERE key = ?"
log = logging.getLogger("convagent")


class Cache:
    """A cache that raises no errors; it logs once why it cannot be used."""

    def __init__(self, path: Path | None, max_bytes: int = MAX_BYTES) -> None:
        """Without a path the cache is in memory, and lost when the process ends."""
        self._path, self._max_bytes, self._lock = path, max_bytes, Lock()
        self._database: sqlite3.Connection | None = None
        try:
            if path:
                make_private_directory(path.parent)
                make_private_file(path)  # the user's questions are private
            # IMMEDIATE: a transaction that starts to write later is refused, not made to wait
            self._database = open_database(path, WAIT_SECONDS, "IMMEDIATE", _TABLE)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def get(self, keys: Collection[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            try:
                database = self._database
                rows = [database.execute(_SELECT, (key,)).fetchone() for key in set(keys)] if database else []
                parted = [(key, value[:-CHECKSUM_BYTES], value) for key, value in filter(None, rows)]
                return {key: value for key, value, sealed in parted if sealed == value + _checksum(key, value)}
            except (sqlite3.Error, UnicodeDecodeError, TypeError) as error:  # what is damaged may be no bytes
                self._give_up(error)
                return {}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Save values. A full file drops its oldest quarter first."""
        sealed = [(key, value + _checksum(key, value)) for key, value in values.items()]
        with self._lock:
            try:
                if self._database:
                    with self._database:
                        self._make_room(self._database)
                        self._database.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", sealed)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                self._give_up(error)

    def close(self) -> None:
        with self._lock:
            if self._database:
                self._database.close()
                self._database = None

    def _make_room(self, database: sqlite3.Connection) -> None:
        pages, free, size = (
            database.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size >= self._max_bytes:
            oldest, newest = database.execute("SELECT min(rowid), max(rowid) FROM kept").fetchone()
            database.execute("DELETE FROM kept WHERE rowid <= ?", (oldest + (newest - oldest) // DROPPED_SHARE,))

    def _give_up(self, error: Exception) -> None:
        log.info("The cache %s cannot be used (%s): going on without it", self._path, error)
        self._database = None


def _checksum(key: bytes, value: bytes) -> bytes:
    return zlib.crc32(key + value).to_bytes(CHECKSUM_BYTES)


MAX_ATTEMPTS, PAUSE = 50, 0.1  # to set a file up, and the seconds between two
BUSY = sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL  # refused because of another process


def open_database(
    path: Path | None, wait_seconds: float, isolation_level: Literal["IMMEDIATE"] | None, table: str
) -> sqlite3.Connection:
    """A connection to a file with a table, made if they are not there, for any thread. Raises `sqlite3.Error`.

    Without a path, a database in memory.
    """
    database = sqlite3.connect(
        path or ":memory:", timeout=wait_seconds, isolation_level=isolation_level, check_same_thread=False
    )
    try:
        # After a power cut the latest changes may be missing, which costs only time.
        _execute_patiently(database, ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", table])
    except BaseException:
        database.close()
        raise
    return database


def _execute_patiently(database: sqlite3.Connection, statements: Sequence[str]) -> None:
    """Execute statements, again where SQLite refuses at once, as it does where two processes make a file together."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            for statement in statements:
                database.execute(statement)
            return
        except UnicodeDecodeError as error:  # SQLite quotes what it found in a damaged file
            raise sqlite3.DatabaseError("it is damaged") from error
        except sqlite3.OperationalError as error:
            if attempt == MAX_ATTEMPTS or error.sqlite_errorcode & 0xFF not in BUSY:
                raise
            time.sleep(PAUSE)
