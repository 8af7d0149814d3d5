"""Stores of earlier versions, brought to the tables and the field names of this one."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec


class Rename(NamedTuple):
    """A field of `TurnResult`, or of a record in it, that got another name."""

    version: int  # of the store: the first that has the new name
    path: tuple[str, ...]  # the fields that lead to the record, empty for the turn itself; lists are gone through
    old: str
    new: str


# In the order in which they are done. A path has the names that hold when its turn comes.
RENAMES = (
    Rename(2, (), "personal", "selected_statements"),
    Rename(2, ("query",), "answers", "hypothetical_answers"),
    Rename(2, ("query",), "previous", "previous_reply"),
    Rename(2, ("query",), "earlier", "earlier_utterances"),
)


# A statement stands once for each user.
STATEMENTS = (
    "CREATE TABLE {name} (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, user TEXT NOT NULL DEFAULT '', "
    "UNIQUE (user, text))"
)
USERS = 3  # the version that has them; what was kept before is that of the person whose machine it is
ADD_USERS = (
    "ALTER TABLE chats ADD COLUMN user TEXT NOT NULL DEFAULT ''",
    STATEMENTS.format(name="statements_of_users"),
    "INSERT INTO statements_of_users (id, text) SELECT id, text FROM statements",
    "DROP TABLE statements",
    "ALTER TABLE statements_of_users RENAME TO statements",
)


def migrate_tables(database: sqlite3.Connection, version: int) -> None:
    """Bring the tables of a version up to date. The transaction, and the version number, are the caller's."""
    for statement in ADD_USERS if version < USERS else ():
        database.execute(statement)


def migrate_turns(database: sqlite3.Connection, version: int) -> None:
    """Rewrite all stored turns of a version. The transaction, and the version number, are the caller's."""
    renames = [rename for rename in RENAMES if rename.version > version]
    if not renames:
        return
    database.create_function("migrated", 1, lambda turn: _rename_fields(turn, renames), deterministic=True)
    database.execute("UPDATE turns SET answered = migrated(answered)")


def _rename_fields(turn: bytes, renames: Iterable[Rename]) -> bytes:
    """A turn as JSON, with the new names. A field that is left out, as it is the default, stays so."""
    decoded = msgspec.json.decode(turn)
    for rename in renames:
        for record in _find_records(decoded, rename.path):
            if rename.old in record:
                record[rename.new] = record.pop(rename.old)
    return msgspec.json.encode(decoded)


def _find_records(value: Any, path: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The JSON objects at a path."""
    if isinstance(value, list):
        for item in value:
            yield from _find_records(item, path)
    elif isinstance(value, dict) and path:
        yield from _find_records(value.get(path[0]), path[1:])
    elif isinstance(value, dict):
        yield value
