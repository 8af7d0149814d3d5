"""What is kept of a person is theirs alone, gone when it is deleted, and no answer is lost for want of room."""

import io
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent.chat.export import export_conversation
from agent.chat.interactive import Terminal
from agent.chat.session import Assistant, Session
from agent.chat.store import ChatTurn, Store, explain_failure
from indexes.documents.document_index import open_documents
from indexes.passage_index import PassageIndex
from indexes.storage.cache import Cache
from tests.conftest import EXAMPLES, no_progress
from tests.serving import ask, serving
from tests.test_chat import QUESTION, shown_after
from tests.test_store import answered

Connect = Callable[..., sqlite3.Connection]
PRIVATE = "the aubergine of my grandmother"


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def rights_for_others(directory: Path) -> list[tuple[str, str]]:
    """What is below a directory that others may do anything with."""
    found = [(path, path.stat().st_mode) for path in sorted(directory.rglob("*"))]
    return [(path.name, stat.filemode(mode)) for path, mode in found if mode & 0o077]


@pytest.mark.usefixtures("open_umask")
def test_the_store_is_nobody_elses_from_its_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the umask, and in a directory that was there before and is open to all."""
    seen: list[list[tuple[str, str]]] = []
    connect: Connect = sqlite3.connect

    def connect_and_look(*arguments: Any, **more: Any) -> sqlite3.Connection:
        seen.append(rights_for_others(tmp_path))
        return connect(*arguments, **more)

    monkeypatch.setattr(sqlite3, "connect", connect_and_look)
    store = Store(tmp_path / "convagent.sqlite")
    chat = store.start_chat("notes")
    with closing(connect(tmp_path / "convagent.sqlite")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("INSERT INTO statements (text) VALUES ('I bake.')")
        assert {path.name for path in tmp_path.iterdir()} > {"convagent.sqlite-wal", "convagent.sqlite-shm"}
        assert rights_for_others(tmp_path) == []
    store.add_turn(chat, ChatTurn(QUESTION, answered(QUESTION, "Rice bread.")))
    assert (len(seen) > 2, [rights for rights in seen if rights]) == (True, [])
    (tmp_path / "convagent.sqlite").chmod(0o644)
    Store(tmp_path / "convagent.sqlite")
    assert rights_for_others(tmp_path) == []


@pytest.mark.usefixtures("open_umask")
def test_caches_and_exported_conversations_are_nobody_elses(tmp_path: Path) -> None:
    caches = tmp_path / "caches"
    caches.mkdir()
    with_old = caches / "replies.sqlite"
    with_old.touch(0o644)
    cache = Cache(with_old)
    cache.put({b"a": b"b"})
    open_documents(EXAMPLES / "documents", caches, None, no_progress)
    assert (caches / "documents").is_dir()
    assert rights_for_others(caches) == []
    cache.close()
    store = Store(tmp_path / "convagent.sqlite")
    chat = store.start_chat("notes")
    store.add_turn(chat, ChatTurn(QUESTION, answered(QUESTION, "Rice bread.")))
    export_conversation(store, chat, tmp_path / "chat.md", overwrite=False)
    assert rights_for_others(tmp_path) == [("caches", "drwxrwxrwx")]


@pytest.mark.parametrize("wal", [False, True])
def test_what_is_deleted_is_gone_however_sqlite_was_built(
    wal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "convagent.sqlite"
    connect: Connect = sqlite3.connect

    def connect_carelessly(*arguments: Any, **more: Any) -> sqlite3.Connection:
        database = connect(*arguments, **more)
        database.execute("PRAGMA secure_delete = OFF")
        return database

    monkeypatch.setattr(sqlite3, "connect", connect_carelessly)
    store = Store(path)
    if wal:
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode=WAL")
    kept, forgotten = store.start_chat("notes"), store.start_chat("notes")
    store.add_turn(kept, ChatTurn("Which bread?", answered("Which bread?", "Rice bread.")))
    for number in range(1, 40):
        told = answered(PRIVATE, f"{PRIVATE} {number}. " * 50, number)
        store.add_turn(forgotten, ChatTurn(f"{PRIVATE} {number}", told))
    size = path.stat().st_size
    store.add_statement(f"I like {PRIVATE}.")
    changed = store.add_statement(f"I love {PRIVATE}.")
    store.change_statement(changed.id, "I sing.")
    store.delete_statements([store.list_statements()[0].id])
    store.delete_chat(forgotten)
    assert [file.name for file in tmp_path.iterdir() if PRIVATE.encode() in file.read_bytes()] == []
    assert path.stat().st_size < size / 4
    assert [turn.utterance for turn in store.read_turns(kept)] == ["Which bread?"]
    assert [statement.text for statement in store.list_statements()] == ["I sing."]


def test_an_answer_that_cannot_be_kept_is_shown(
    assistant: Assistant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason, and advice that fits; once there is room, it is kept with the next."""
    session = Session(assistant, Store(tmp_path / "convagent.sqlite"))
    terminal = Terminal(session, Console(file=io.StringIO(), width=5000, highlight=False))
    connect: Connect = sqlite3.connect

    def connect_to_a_full_disk(*arguments: Any, **more: Any) -> sqlite3.Connection:
        database = connect(*arguments, **more)
        database.execute("PRAGMA max_page_count = 1")
        return database

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_to_a_full_disk)
        shown = shown_after(terminal, QUESTION)
    for told in ("non-toxic to cats", "[1] garden-", "the answer is not kept", "the disk is full", "Make room"):
        assert told in shown
    assert "Move it away" not in shown
    assert "the answer is not kept" not in shown_after(terminal, "And which of them survive frost?")
    assert session.chat is not None
    assert len(session.store.read_turns(session.chat)) == 2


def test_the_advice_fits_the_error() -> None:
    for code, told, advice in (
        (sqlite3.SQLITE_IOERR | 3 << 8, "the disk is full, or fails", "Make room"),
        (sqlite3.SQLITE_READONLY | 1 << 8, "permissions", "Change them"),
        (sqlite3.SQLITE_CORRUPT, "is damaged", "Move it away"),
    ):
        error = sqlite3.DatabaseError("no")
        error.sqlite_errorcode = code
        explained = explain_failure(error, "here")
        assert (told in explained.what, explained.remedy.startswith(advice)) == (True, True), explained


def test_a_page_shows_an_answer_that_cannot_be_kept(example_index: PassageIndex, tmp_path: Path) -> None:
    """While another process holds the store."""
    arguments = ("--model", "none", "--embedder", "none")
    with (
        serving(example_index.directory, tmp_path, *arguments) as server,
        server.open_client() as client,
        closing(sqlite3.connect(tmp_path / "convagent.sqlite")) as other,
    ):
        client.get("/")
        other.execute("BEGIN IMMEDIATE")
        page = ask(client, QUESTION)
        assert page.status_code == 200
        assert "non-toxic to cats" in page.text
        assert "This answer is not kept" in page.text
        assert "is locked: another process is writing in it" in page.text
        assert "Move it away" not in page.text
        other.rollback()
        assert ask(client, QUESTION).url.path.startswith("/chats/")
