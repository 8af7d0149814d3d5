"""What was computed once and need not be again: values by the hash of all that decides them, in one SQLite file.

Several threads and processes may use a file; it may be deleted at any time. It is a convenience: where it is busy,
damaged or the disk is full, nothing is known and nothing is kept.
"""

import logging
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from threading import Lock

MOST_BYTES = 1 << 30
WAIT = 30.0  # seconds for another process that is writing
DROPPED = 4  # where it is full, the oldest of so many parts makes room
ATTEMPTS, PAUSE = 50, 0.1  # to open a file, and the seconds between two
log = logging.getLogger("convagent")


class Cache:
    """Raises nothing; says once why it cannot be used."""

    def __init__(self, path: Path | None, most_bytes: int = MOST_BYTES) -> None:
        """Without a path it is in memory, and gone with the process."""
        self._path, self._most_bytes, self._turn = path, most_bytes, Lock()
        self._database: sqlite3.Connection | None = None
        try:
            if path:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.touch(mode=0o600)  # what was asked is nobody else's affair
            self._database = _open_database(path)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def get(self, keys: Collection[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are known."""
        with self._turn:
            try:
                return dict(self._rows(self._database, keys)) if self._database else {}
            except sqlite3.Error as error:
                self._give_up(error)
                return {}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values. Where the file is full the oldest quarter of it makes room."""
        with self._turn:
            try:
                if self._database:
                    with self._database:
                        self._make_room(self._database)
                        self._database.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", values.items())
            except sqlite3.Error as error:
                self._give_up(error)

    def close(self) -> None:
        with self._turn:
            if self._database:
                self._database.close()
                self._database = None

    def _rows(self, database: sqlite3.Connection, keys: Collection[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for key in set(keys):
            yield from database.execute("SELECT key, value FROM kept WHERE key = ?", (key,))

    def _make_room(self, database: sqlite3.Connection) -> None:
        pages, free, size = (
            database.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size >= self._most_bytes:
            oldest, newest = database.execute("SELECT min(rowid), max(rowid) FROM kept").fetchone()
            database.execute("DELETE FROM kept WHERE rowid <= ?", (oldest + (newest - oldest) // DROPPED,))

    def _give_up(self, error: Exception) -> None:
        log.info("The cache %s cannot be used (%s): going on without it", self._path, error)
        self._database = None


def _open_database(path: Path | None) -> sqlite3.Connection:
    """A connection to the file, which is made if it is not there."""
    database = sqlite3.connect(
        path or ":memory:",
        timeout=WAIT,
        isolation_level="IMMEDIATE",  # a transaction that begins to write later is refused, not made to wait
        check_same_thread=False,
    )
    for attempt in range(1, ATTEMPTS + 1):
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")  # losing the latest in a power cut costs only time
            database.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)")
            break
        except sqlite3.OperationalError:  # whoever makes the file at the same moment is refused at once
            if attempt == ATTEMPTS:
                raise
            time.sleep(PAUSE)
    return database
