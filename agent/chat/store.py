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
from typing import Any, Literal

import msgspec

from indexes.storage.directories import find_data_directory, make_private_directory, make_private_file
from schemas.errors import MissingError, RunError, UsageError
from schemas.records import ChatSummary, Statement, TurnResult

VERSION = 5  # of the tables and of the turns in them; no other is read, save the one before, which had fewer tables
RATINGS = ("good", "bad")
MAX_TITLE = 120  # characters
WAIT_SECONDS = 10.0  # for another process that is writing
TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS chats (
    id INTEGER PRIMARY KEY AUTOINCREMENT, started TEXT NOT NULL, source TEXT NOT NULL, user TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS turns (
    chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE, number INTEGER NOT NULL,
    utterance TEXT NOT NULL, reply TEXT NOT NULL, turn BLOB NOT NULL, PRIMARY KEY (chat, number));
CREATE TABLE IF NOT EXISTS statements (
    id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, user TEXT NOT NULL DEFAULT '', UNIQUE (user, text));
CREATE TABLE IF NOT EXISTS titles (
    chat INTEGER PRIMARY KEY REFERENCES chats (id) ON DELETE CASCADE, title TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ratings (
    chat INTEGER NOT NULL, number INTEGER NOT NULL, rating TEXT NOT NULL, PRIMARY KEY (chat, number),
    FOREIGN KEY (chat, number) REFERENCES turns (chat, number) ON DELETE CASCADE);
PRAGMA user_version = {VERSION};
COMMIT;
"""
# Nothing is left in the file of what is deleted, however SQLite was built.
SETTINGS = "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;"
OF_USER = "chat IN (SELECT id FROM chats WHERE user = ?)"

_MOVE_AWAY = "Move it away, or give --incognito to keep nothing."
_DAMAGED = ("cannot be used: it is damaged, or no file of convagent's", _MOVE_AWAY)
_DISK = ("cannot be used: the disk is full, or fails", "Make room there; what is kept already stays as it was.")
_LOCKED = ("is locked: another process is writing in it", "Wait for that process, or end it.")
_RIGHTS = (
    "cannot be used: its permissions forbid it",
    "Change them, or set CONVAGENT_DATA to a directory of your own; --incognito keeps nothing.",
)
_FAILURES = {  # by SQLite's code: what is wrong, and what helps
    **dict.fromkeys((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR), _DISK),
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _LOCKED),
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN), _RIGHTS),
}

# What an utterance is: a question to the documents, or small talk, which needs no search.
TurnKind = Literal["question", "greeting", "thanks", "agreement", "farewell", "help", "documents", "scope"]


@dataclass(frozen=True, slots=True)
class ChatTurn:
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

    def __init__(self, path: Path | None) -> None:
        """Open the store, or make it. Raises `RunError` for a file that cannot be made, or is no such store."""
        self._path, self._user = path, ""  # the person whose machine it is
        self._lock = threading.Lock()  # of threads that share the one connection to memory
        self._memory = None if path else self._connect()
        try:
            if path:
                make_private_directory(path.parent)
                make_private_file(path)
            with self._open() as database:
                version = int(database.execute("PRAGMA user_version").fetchone()[0])
                if version in (0, VERSION - 1):
                    database.executescript(TABLES)  # another process that makes them meanwhile waits
                elif version != VERSION:
                    what = f"was made by another version ({version})"
                    raise RunError(what, where=str(path), remedy=_MOVE_AWAY)
        except OSError as error:
            raise RunError(f"cannot be made ({error.strerror})", where=str(path), remedy=_MOVE_AWAY) from error

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
            raise RunError(_DAMAGED[0], where=str(self._path), remedy=_DAMAGED[1]) from error
        except OverflowError as error:
            raise MissingError("there is no such number", remedy="`convagent chats` lists conversations.") from error
        except sqlite3.Error as error:
            raise explain_failure(error, str(self._path)) from error

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path or ":memory:", timeout=WAIT_SECONDS, check_same_thread=False)
        database.executescript(SETTINGS)
        return database

    def _select(self, query: str, *values: object) -> list[Any]:
        with self._open() as database:
            return database.execute(query, values).fetchall()

    def _change(self, statement: str, *values: object) -> int:
        """Execute a statement; how many rows it changed."""
        with self._open() as database:
            return database.execute(statement, values).rowcount

    def _forget_deleted(self) -> None:
        """Write the file anew without what was deleted, whose place is empty already: where that fails, it stays so."""
        if self._path is None:
            return
        with suppress(sqlite3.Error), closing(self._connect()) as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def for_user(self, user: str) -> "Store":
        other = copy.copy(self)
        other._user = user
        return other

    def start_chat(self, source: str) -> int:
        """Start a conversation; its id. It is listed from its first turn on."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        insert = "INSERT INTO chats (started, source, user) VALUES (?, ?, ?)"
        with self._open() as database:
            return int(database.execute(insert, (now, source, self._user)).lastrowid or 0)

    def add_turn(self, chat: int, turn: ChatTurn) -> None:
        """Keep a turn at the end of a conversation. Raises `MissingError` where it was deleted meanwhile."""
        insert = (
            "INSERT INTO turns SELECT id, (SELECT COUNT(*) + 1 FROM turns WHERE chat = id), ?, ?, ? "
            "FROM chats WHERE id = ? AND user = ?"
        )
        if not self._change(insert, *_to_columns(turn), chat, self._user):
            raise MissingError(f"there is no conversation {chat} any more: the answer is not kept")

    def replace_turn(self, chat: int, number: int, turn: ChatTurn) -> None:
        """Keep a turn in place of the last one. Raises `MissingError` where that number is not the last any more."""
        update = (
            "UPDATE turns SET utterance = ?, reply = ?, turn = ? WHERE chat = ? AND number = ? "
            "AND number = (SELECT COUNT(*) FROM turns AS all_turns WHERE all_turns.chat = turns.chat) "
            "AND chat IN (SELECT id FROM chats WHERE user = ?)"
        )
        if not self._change(update, *_to_columns(turn), chat, number, self._user):
            raise MissingError(f"the conversation {chat} went on, or is deleted: the new answer is not kept")
        self.rate_turn(chat, number, "")
        self._forget_deleted()

    def read_utterances(self, most: int = 500) -> tuple[str, ...]:
        """What was asked last, over all conversations, oldest first."""
        query = f"SELECT utterance FROM turns WHERE {OF_USER} ORDER BY rowid DESC LIMIT ?"  # noqa: S608 - a constant
        return tuple(text for (text,) in reversed(self._select(query, self._user, most)))

    def read_turns(self, chat: int) -> tuple[ChatTurn, ...]:
        """The turns of a conversation. Raises `MissingError` for one that is not there."""
        query = f"SELECT turn FROM turns WHERE chat = ? AND {OF_USER} ORDER BY number"  # noqa: S608 - a constant
        found = self._select(query, chat, self._user)
        if not found:
            raise _no_chat(chat)
        try:
            return tuple(msgspec.json.decode(turn, type=ChatTurn) for (turn,) in found)
        except (msgspec.DecodeError, TypeError, ValueError, RecursionError) as error:
            what = f"is damaged: conversation {chat} cannot be read ({error})"
            remedy = f"`convagent chats --forget {chat}` deletes it; the others stay."
            raise RunError(what, where=str(self._path), remedy=remedy) from error

    def list_chats(self, words: str = "", most: int | None = None) -> tuple[ChatSummary, ...]:
        """Conversations that have all of some words, the latest first, at most so many; without words, all.

        Words are looked for in what was said, in the title, and in the names and titles of sources.
        """
        wanted = words.casefold().split()
        title = "COALESCE(named.title, t.utterance)"
        said = f"(SELECT {title} || GROUP_CONCAT(' ' || utterance || ' ' || reply) FROM turns WHERE chat = c.id)"  # noqa: S608 - constants
        text = said if wanted else "''"
        columns = f"c.id, c.started, c.source, {title}"
        query = (
            f"SELECT {columns}, (SELECT COUNT(*) FROM turns WHERE chat = c.id), {text} "  # noqa: S608 - constants
            "FROM chats c JOIN turns t ON t.chat = c.id AND t.number = 1 LEFT JOIN titles named ON named.chat = c.id "
            "WHERE c.user = ? ORDER BY c.id DESC"
        )
        with self._open() as database:
            found = database.execute(query, (self._user,))
            matching = (ChatSummary(*row) for *row, said in found if all(word in said.casefold() for word in wanted))
            return tuple(islice(matching, most))

    def read_source(self, chat: int) -> str:
        """The folder or index that a conversation asked. Raises `MissingError` for one that is not there."""
        for (source,) in self._select("SELECT source FROM chats WHERE id = ? AND user = ?", chat, self._user):
            return str(source)
        raise _no_chat(chat)

    def read_title(self, chat: int) -> str:
        """The title that the person gave a conversation; "" for none."""
        query = f"SELECT title FROM titles WHERE chat = ? AND {OF_USER}"  # noqa: S608 - a constant
        return "".join(title for (title,) in self._select(query, chat, self._user))

    def rename_chat(self, chat: int, title: str) -> None:
        """Give a conversation a title; an empty one is its first question again. Raises `MissingError` as below."""
        self.read_source(chat)
        self._change("DELETE FROM titles WHERE chat = ?", chat)
        if title := " ".join(title.split())[:MAX_TITLE]:
            self._change("INSERT OR REPLACE INTO titles VALUES (?, ?)", chat, title)

    def rate_turn(self, chat: int, number: int, rating: str) -> None:
        """Keep what the person thinks of an answer, "good" or "bad"; "" forgets it. Raises `MissingError` as below."""
        self.read_source(chat)
        self._change("DELETE FROM ratings WHERE chat = ? AND number = ?", chat, number)
        if rating in RATINGS:
            insert = "INSERT OR REPLACE INTO ratings SELECT chat, number, ? FROM turns WHERE chat = ? AND number = ?"
            self._change(insert, rating, chat, number)

    def read_ratings(self, chat: int) -> dict[int, str]:
        """What the person thinks of answers, by the numbers of their turns."""
        return dict(self._select(f"SELECT number, rating FROM ratings WHERE chat = ? AND {OF_USER}", chat, self._user))  # noqa: S608 - a constant

    def delete_chat(self, chat: int) -> None:
        """Delete a conversation with its turns. Raises `MissingError` for one that is not there."""
        if not self._change("DELETE FROM chats WHERE id = ? AND user = ?", chat, self._user):
            raise _no_chat(chat)
        self._forget_deleted()

    def list_statements(self) -> tuple[Statement, ...]:
        """The statements about the person, in the order in which they were added."""
        found = self._select("SELECT id, text FROM statements WHERE user = ? ORDER BY id", self._user)
        return tuple(Statement(str(id), text) for id, text in found)

    def add_statement(self, text: str) -> Statement:
        """Keep a statement, once only. Raises `UsageError` for an empty one."""
        text = _normalise_statement(text)
        self._change("INSERT OR IGNORE INTO statements (text, user) VALUES (?, ?)", text, self._user)
        return next(statement for statement in self.list_statements() if statement.text == text)

    def change_statement(self, id: str, text: str) -> None:
        """Give a statement another text. Raises `UsageError` for an empty one, `MissingError` where it is not there."""
        text = _normalise_statement(text)
        update = "UPDATE OR REPLACE statements SET text = ? WHERE id = ? AND user = ?"
        if not self._change(update, text, id, self._user):
            raise MissingError(f"there is no statement {id}", remedy="`/about-me` lists them.")
        self._forget_deleted()

    def delete_statements(self, ids: Sequence[str]) -> None:
        """Delete statements, or none where one is not there: `MissingError` then names those that are not."""
        missing = sorted(set(ids) - {statement.id for statement in self.list_statements()})
        if missing:
            raise MissingError(f"there is no statement {', '.join(missing)}", remedy="`/about-me` lists them.")
        with self._open() as database:
            own = [(id, self._user) for id in ids]
            database.executemany("DELETE FROM statements WHERE id = ? AND user = ?", own)
        self._forget_deleted()


def _to_columns(turn: ChatTurn) -> tuple[str, str, bytes]:
    """What was asked, what a search finds of the reply (its sources' names and titles, too), and the whole."""
    response, passages = turn.answered.response, turn.answered.passages
    sources = (f"{passage.document} {passage.title}" for passage in passages if passage.id in response.used)
    return turn.utterance, " ".join((response.direct, response.text, *sources)), msgspec.json.encode(turn)


def explain_failure(error: sqlite3.Error, where: str) -> RunError:
    """What SQLite could not do, and what helps: a file is only to be moved away where it is damaged."""
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest says more than is needed
    what, remedy = _FAILURES.get(kind, _DAMAGED)
    return RunError(what, where=where, remedy=remedy)


def _no_chat(chat: int) -> MissingError:
    return MissingError(f"there is no conversation {chat}", remedy="`convagent chats` lists them.")


def _normalise_statement(text: str) -> str:
    """A statement on one line. Raises `UsageError` for an empty one."""
    normalised = " ".join(text.split())
    if not normalised:
        raise UsageError("a statement needs words", remedy="Such as: I am vegetarian.")
    return normalised
