"""What is kept of a person, in one SQLite file on this machine: conversations, and statements about themselves.

A turn is kept whole (`TurnResult`), so that its sources can be opened, and the conversation exported, much later.
"""

import copy
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec

from indexes.storage.directories import find_data_directory, make_private_directory, make_private_file
from schemas.errors import MissingError, RunError, UsageError
from schemas.records import ChatSummary, Statement, TurnResult

VERSION = 4  # of the tables and of the turns in them; no other is read
WAIT_SECONDS = 10.0  # for another process that is writing
TABLES = (
    "CREATE TABLE chats (id INTEGER PRIMARY KEY AUTOINCREMENT, started TEXT NOT NULL, source TEXT NOT NULL, "
    "user TEXT NOT NULL DEFAULT '')",
    "CREATE TABLE turns (chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE, number INTEGER NOT NULL, "
    "utterance TEXT NOT NULL, reply TEXT NOT NULL, turn BLOB NOT NULL, PRIMARY KEY (chat, number))",
    "CREATE TABLE statements (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, user TEXT NOT NULL DEFAULT '', "
    "UNIQUE (user, text))",
)


MOVE_AWAY = "Move it away, or give --incognito to keep nothing."
_DISK = "Make room there; what is kept already stays as it was."
_RIGHTS = "Change its permissions, or set CONVAGENT_DATA to a directory of your own; --incognito keeps nothing."
_FAILURES = {  # by SQLite's code: what is wrong, and what helps
    sqlite3.SQLITE_FULL: ("cannot be written: the disk is full", _DISK),
    sqlite3.SQLITE_IOERR: ("cannot be read or written: the disk fails, or is full", _DISK),
    sqlite3.SQLITE_BUSY: ("is locked: another process is writing in it", "Wait for that process, or end it."),
    sqlite3.SQLITE_LOCKED: ("is locked: another process is writing in it", "Wait for that process, or end it."),
    sqlite3.SQLITE_READONLY: ("cannot be written: it may only be read", _RIGHTS),
    sqlite3.SQLITE_PERM: ("cannot be used: it may not be opened", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: ("cannot be used: it cannot be opened", _RIGHTS),
    sqlite3.SQLITE_CORRUPT: ("cannot be used: it is damaged", MOVE_AWAY),
    sqlite3.SQLITE_NOTADB: ("cannot be used: it is no file of convagent's, or damaged", MOVE_AWAY),
}


# What an utterance is: a question to the documents, or small talk, which needs no search.
TurnKind = Literal["question", "greeting", "thanks", "agreement", "farewell", "help", "documents", "scope"]


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One turn of a kept conversation."""

    utterance: str
    answered: TurnResult
    kind: TurnKind = "question"
    scope: str = ""  # what the conversation was kept to, as `agent.chat.scope` has it; "" for everything
    within: str = ""  # the documents of some date that this question alone was asked of, in words; "" for none


def open_store(*, incognito: bool) -> "Store":
    """The person's own store, or one in memory, which is gone when the process ends."""
    return Store(None if incognito else find_data_directory() / "convagent.sqlite")


class Store:
    """The file, or memory alone (`Store(None)`, incognito). Several threads and processes may use the same file.

    What it has belongs to users, and one user's store (`for_user`) shows and changes nothing of another's.
    """

    _remedy = MOVE_AWAY

    def __init__(self, path: Path | None) -> None:
        """Open the store: make it where there is none, bring one of an earlier version up to date.

        Raises `RunError` for a file that cannot be made, is no such store, or is one of a later version.
        """
        self._path, self._user = path, ""  # the person whose machine it is
        self._memory = None if path else sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()  # of threads that share the one connection to memory
        try:
            if path:
                make_private_directory(path.parent)
                make_private_file(path)
            with self._open() as database:
                self._update_version(database)
        except OSError as error:
            raise RunError(f"cannot be made ({error.strerror})", where=str(path), remedy=self._remedy) from error

    def _update_version(self, database: sqlite3.Connection) -> None:
        """Make the tables. Another process that opens the store meanwhile waits."""
        if self._read_version(database) == VERSION:
            return
        database.execute("BEGIN IMMEDIATE")
        if self._read_version(database) == VERSION:  # another process was first
            return
        for table in TABLES:
            database.execute(table)
        database.execute(f"PRAGMA user_version = {VERSION}")

    def _read_version(self, database: sqlite3.Connection) -> int:
        """The version of the file, 0 for an empty one. Raises `RunError` for any but this."""
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        if version not in (0, VERSION):
            raise RunError(f"was made by another version ({version})", where=str(self._path), remedy=self._remedy)
        return version

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is done, or nothing."""
        try:
            if self._memory is not None:
                with self._lock, self._memory as database:
                    yield database
                return
            with closing(self._connect()) as database, database:
                yield database
        except UnicodeDecodeError as error:
            raise RunError("cannot be used: it is damaged", where=str(self._path), remedy=MOVE_AWAY) from error
        except OverflowError as error:
            raise MissingError("there is no such number", remedy="`convagent chats` lists conversations.") from error
        except sqlite3.Error as error:
            raise explain_failure(error, str(self._path)) from error

    def _connect(self) -> sqlite3.Connection:
        """A connection that leaves nothing of what it deletes, however SQLite was built."""
        database = sqlite3.connect(str(self._path), timeout=WAIT_SECONDS)
        for setting in ("foreign_keys = ON", "secure_delete = ON", "temp_store = MEMORY"):
            database.execute(f"PRAGMA {setting}")
        return database

    def _forget_deleted(self) -> None:
        """Write the file anew without what was deleted, whose place is empty already: where that fails, it stays so."""
        if self._path is None:
            return
        with suppress(sqlite3.Error), closing(self._connect()) as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def for_user(self, user: str) -> "Store":
        """The same store for another of its users."""
        other = copy.copy(self)
        other._user = user
        return other

    def start_chat(self, source: str) -> int:
        """Start a conversation; its id. It is listed from its first turn on."""
        with self._open() as database:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            found = database.execute(
                "INSERT INTO chats (started, source, user) VALUES (?, ?, ?)", (now, source, self._user)
            )
            return int(found.lastrowid or 0)

    def add_turn(
        self,
        chat: int,
        utterance: str,
        answered: TurnResult,
        kind: TurnKind = "question",
        scope: str = "",
        within: str = "",
    ) -> None:
        """Keep a turn at the end of a conversation. Raises `MissingError` where it was deleted meanwhile."""
        kept = msgspec.json.encode(ChatTurn(utterance, answered, kind, scope, within))
        with self._open() as database:
            added = database.execute(
                "INSERT INTO turns SELECT id, (SELECT COUNT(*) + 1 FROM turns WHERE chat = id), ?, ?, ? "
                "FROM chats WHERE id = ? AND user = ?",
                (utterance, answered.response.text, kept, chat, self._user),
            ).rowcount
        if not added:
            raise MissingError(f"there is no conversation {chat} any more: the answer is not kept")

    def replace_turn(self, chat: int, number: int, turn: ChatTurn) -> None:
        """Keep a turn in place of the last one. Raises `MissingError` where that number is not the last any more."""
        with self._open() as database:
            changed = database.execute(
                "UPDATE turns SET utterance = ?, reply = ?, turn = ? WHERE chat = ? AND number = ? "
                "AND number = (SELECT COUNT(*) FROM turns WHERE chat = ?) "
                "AND chat IN (SELECT id FROM chats WHERE user = ?)",
                (
                    turn.utterance,
                    turn.answered.response.text,
                    msgspec.json.encode(turn),
                    chat,
                    number,
                    chat,
                    self._user,
                ),
            ).rowcount
        if not changed:
            raise MissingError(f"the conversation {chat} went on, or is deleted: the new answer is not kept")
        self._forget_deleted()

    def read_utterances(self, most: int = 500) -> tuple[str, ...]:
        """What was asked last, over all conversations, oldest first."""
        with self._open() as database:
            found = database.execute(
                "SELECT utterance FROM turns JOIN chats ON chats.id = chat WHERE user = ? "
                "ORDER BY turns.rowid DESC LIMIT ?",
                (self._user, most),
            ).fetchall()
        return tuple(text for (text,) in reversed(found))

    def read_turns(self, chat: int) -> tuple[ChatTurn, ...]:
        """The turns of a conversation. Raises `MissingError` for one that is not there."""
        with self._open() as database:
            found = database.execute(
                "SELECT turn FROM turns JOIN chats ON chats.id = chat WHERE chat = ? AND user = ? ORDER BY number",
                (chat, self._user),
            ).fetchall()
        if not found:
            raise _no_chat(chat)
        try:
            return tuple(msgspec.json.decode(turn, type=ChatTurn) for (turn,) in found)
        except (msgspec.DecodeError, TypeError, ValueError, RecursionError) as error:
            what = f"is damaged: conversation {chat} cannot be read ({error})"
            remedy = f"`convagent chats --forget {chat}` deletes it; the others stay."
            raise RunError(what, where=str(self._path), remedy=remedy) from error

    def list_chats(self, words: str = "", first: int = 0, most: int | None = None) -> tuple[ChatSummary, ...]:
        """Conversations in which all of some words were said, the latest first; all of them without words.

        Of these at most so many, from the one of that place (from 0) on.
        """
        wanted = words.casefold().split()
        text = "(SELECT GROUP_CONCAT(utterance || ' ' || reply, ' ') FROM turns WHERE chat = c.id)" if wanted else "''"
        with self._open() as database:
            found = database.execute(
                f"SELECT c.id, c.started, c.source, t.utterance, "  # noqa: S608 - one of two constants
                f"(SELECT COUNT(*) FROM turns WHERE chat = c.id), {text} "
                "FROM chats c JOIN turns t ON t.chat = c.id AND t.number = 1 WHERE c.user = ? ORDER BY c.id DESC",
                (self._user,),
            )
            matching = (ChatSummary(*row) for *row, said in found if all(word in said.casefold() for word in wanted))
            return tuple(islice(matching, first, None if most is None else first + most))

    def read_source(self, chat: int) -> str:
        """The folder or index that a conversation asked. Raises `MissingError` for one that is not there."""
        with self._open() as database:
            found = database.execute(
                "SELECT source FROM chats WHERE id = ? AND user = ?", (chat, self._user)
            ).fetchone()
        if found is None:
            raise _no_chat(chat)
        return str(found[0])

    def delete_chat(self, chat: int) -> None:
        """Delete a conversation. Raises `MissingError` for one that is not there."""
        with self._open() as database:
            own = (chat, self._user)
            database.execute("DELETE FROM turns WHERE chat IN (SELECT id FROM chats WHERE id = ? AND user = ?)", own)
            gone = database.execute("DELETE FROM chats WHERE id = ? AND user = ?", own).rowcount
        if not gone:
            raise _no_chat(chat)
        self._forget_deleted()

    def list_statements(self) -> tuple[Statement, ...]:
        """The statements about the person, in the order in which they were added."""
        with self._open() as database:
            found = database.execute(
                "SELECT id, text FROM statements WHERE user = ? ORDER BY id", (self._user,)
            ).fetchall()
        return tuple(Statement(str(id), text) for id, text in found)

    def add_statement(self, text: str) -> Statement:
        """Keep a statement, once only. Raises `UsageError` for an empty one."""
        text = _normalise_statement(text)
        with self._open() as database:
            own = (text, self._user)
            database.execute("INSERT OR IGNORE INTO statements (text, user) VALUES (?, ?)", own)
            id = database.execute("SELECT id FROM statements WHERE text = ? AND user = ?", own).fetchone()[0]
        return Statement(str(id), text)

    def change_statement(self, id: str, text: str) -> Statement:
        """Give a statement another text. Raises `UsageError` for an empty one, `MissingError` where it is not there."""
        text = _normalise_statement(text)
        with self._open() as database:
            changed = database.execute(
                "UPDATE OR REPLACE statements SET text = ? WHERE id = ? AND user = ?", (text, id, self._user)
            ).rowcount
            if not changed:
                raise MissingError(f"there is no statement {id}", remedy="`/about-me` lists them.")
        self._forget_deleted()
        return Statement(id, text)

    def delete_statements(self, ids: Sequence[str]) -> None:
        """Delete statements, or none where one is not there: `MissingError` then names those that are not."""
        missing = sorted(set(ids) - {statement.id for statement in self.list_statements()})
        if missing:
            raise MissingError(f"there is no statement {', '.join(missing)}", remedy="`/about-me` lists them.")
        with self._open() as database:
            own = [(id, self._user) for id in ids]
            database.executemany("DELETE FROM statements WHERE id = ? AND user = ?", own)
        self._forget_deleted()


def explain_failure(error: sqlite3.Error, where: str) -> RunError:
    """What SQLite could not do, and what helps: a file is only to be moved away where it is damaged."""
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest says more than is needed
    what, remedy = _FAILURES.get(kind, (f"cannot be used ({error})", MOVE_AWAY))
    return RunError(what, where=where, remedy=remedy)


def _no_chat(chat: int) -> MissingError:
    return MissingError(f"there is no conversation {chat}", remedy="`convagent chats` lists them.")


def _normalise_statement(text: str) -> str:
    """A statement on one line. Raises `UsageError` for an empty one."""
    normalised = " ".join(text.split())
    if not normalised:
        raise UsageError("a statement needs words", remedy="Such as: I am vegetarian.")
    return normalised
