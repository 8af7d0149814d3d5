"""Opening SQLite files that several processes use at once."""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

MAX_ATTEMPTS, PAUSE = 50, 0.1  # to set a file up, and the seconds between two
BUSY = sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL  # refused because of another process

IsolationLevel = Literal["DEFERRED", "EXCLUSIVE", "IMMEDIATE"] | None


def open_database(
    path: Path | None, wait_seconds: float, isolation_level: IsolationLevel, statements: Sequence[str] = ()
) -> sqlite3.Connection:
    """A connection to a file, made if it is not there, for any thread; without a path, a database in memory.

    `statements` set it up, such as `CREATE TABLE IF NOT EXISTS`. Raises `sqlite3.Error`.
    """
    database = sqlite3.connect(
        path or ":memory:", timeout=wait_seconds, isolation_level=isolation_level, check_same_thread=False
    )
    try:
        # After a power cut the latest changes may be missing, which costs only time.
        _execute_patiently(database, ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", *statements])
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
