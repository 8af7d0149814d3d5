"""What is kept of a person: nothing is lost, nothing is half there, and nothing at all in incognito."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.chat.export import render_conversation, to_markdown, to_topics
from agent.chat.store import VERSION, ChatTurn, Store
from agent.tracks.files import read_topics
from schemas.errors import MissingError, RunError, UsageError
from schemas.records import Hit, Passage, Query, Response, ScoredStatement, Sentence, Statement, TurnResult
from tests.test_topics import write


def answered(question: str, reply: str, number: int = 1) -> TurnResult:
    passage = Passage("bread.md:1-2", reply, title="Re: Baking without wheat")
    chosen = (ScoredStatement(Statement("1", "I am vegetarian."), 0.7),)
    response = Response((Sentence(reply, (passage.id,)),))
    return TurnResult(f"1_{number}", Query(question), chosen, (Hit(passage.id, 2.0),), (passage,), (response,))


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(tmp_path / "new" / "kept.sqlite" if request.param == "file" else None)


def test_a_conversation_is_kept_found_and_forgotten(store: Store) -> None:
    chat, other = store.start_chat("notes"), store.start_chat("recipes")
    first, second = answered("Which bread?", "Rice bread."), answered("How long?", "Two days.", 2)
    store.add_turn(chat, ChatTurn("Which bread?", first))
    store.add_turn(other, ChatTurn("What is 100 % rye?", answered("What is 100 % rye?", "A dark loaf.")))
    store.add_turn(chat, ChatTurn("How long?", second))
    assert store.read_turns(chat) == (ChatTurn("Which bread?", first), ChatTurn("How long?", second))
    assert [(found.id, found.title, found.turns) for found in store.list_chats()] == [
        (other, "What is 100 % rye?", 1),
        (chat, "Which bread?", 2),
    ]
    assert [found.id for found in store.list_chats("TWO days")] == [chat]
    assert len(store.list_chats("baking bread.md")) == 2  # the title of a source, and its document
    store.rename_chat(chat, "Crumbs")
    assert [found.id for found in store.list_chats("crumbs two")] == [chat]
    store.rename_chat(chat, "")
    assert [found.id for found in store.list_chats("100 %")] == [other]
    assert store.list_chats("100 days") == ()
    assert store.read_source(other) == "recipes"
    store.delete_chat(other)
    assert [found.id for found in store.list_chats()] == [chat]
    for gone in (lambda: store.read_turns(other), lambda: store.delete_chat(other), lambda: store.read_source(other)):
        with pytest.raises(MissingError, match=f"there is no conversation {other}"):
            gone()
    assert store.read_utterances() == ("Which bread?", "How long?")
    with pytest.raises(MissingError, match=f"there is no conversation {other} any more"):
        store.add_turn(other, ChatTurn("How long?", second))
    with pytest.raises(MissingError, match="there is no such number"):
        store.read_turns(10**20)


def test_statements_are_added_changed_and_deleted(store: Store) -> None:
    cats = store.add_statement("  I have\ntwo cats. ")
    assert store.add_statement("I have two cats.") == cats
    bread = store.add_statement("I bake.")
    assert store.list_statements() == (Statement(cats.id, "I have two cats."), bread)
    store.change_statement(bread.id, "I bake bread.")
    with pytest.raises(MissingError, match="there is no statement 99"):
        store.delete_statements([cats.id, "99"])
    assert len(store.list_statements()) == 2
    store.delete_statements([cats.id])
    assert [statement.text for statement in store.list_statements()] == ["I bake bread."]
    with pytest.raises(UsageError, match="a statement needs words"):
        store.add_statement("  ")
    with pytest.raises(MissingError, match="there is no statement 99"):
        store.change_statement("99", "I sing.")


@pytest.mark.parametrize("version", [VERSION - 2, VERSION + 1])
def test_a_store_of_another_version_is_refused(version: int, tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(RunError, match=rf"was made by another version \({version}\)"):
        Store(path)
    assert path.read_bytes() == before


def test_a_store_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    older = Store(path)
    chat = older.start_chat("notes")
    older.add_turn(chat, ChatTurn("Which bread?", answered("Which bread?", "Rice bread.")))
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"DROP TABLE titles; DROP TABLE ratings; PRAGMA user_version = {VERSION - 1}")
    store = Store(path)
    store.rename_chat(chat, "  Bread\n again ")
    store.rate_turn(chat, 1, "good")
    assert (store.list_chats()[0].title, store.read_ratings(chat)) == ("Bread again", {1: "good"})
    exported = render_conversation(store, chat, ".md").decode()
    assert (exported.startswith("# Bread again\n"), "*Rated good.*" in exported) == (True, True)
    store.rename_chat(chat, " ")
    store.replace_turn(chat, 1, store.read_turns(chat)[0])  # another answer, of which nothing is known
    assert (store.list_chats()[0].title, store.read_ratings(chat)) == ("Which bread?", {})
    store.rate_turn(chat, 1, "bad")
    store.delete_chat(chat)
    with closing(sqlite3.connect(path)) as database:
        assert not database.execute("SELECT * FROM ratings").fetchall()


def test_users_of_one_store_neither_see_nor_change_what_is_anothers(store: Store) -> None:
    ana, ben = store.for_user("ana"), store.for_user("ben")
    chat, cats = ana.start_chat("notes"), ana.add_statement("I have two cats.")
    ana.add_turn(chat, ChatTurn("Which bread?", answered("Which bread?", "Rice bread.")))
    attempts: list[Any] = [
        lambda own: own.read_turns(chat),
        lambda own: own.read_source(chat),
        lambda own: own.add_turn(chat, ChatTurn("And?", answered("And?", "No."))),
        lambda own: own.delete_chat(chat),
        lambda own: own.rename_chat(chat, "Mine"),
        lambda own: own.rate_turn(chat, 1, "bad"),
        lambda own: own.change_statement(cats.id, "I have none."),
        lambda own: own.delete_statements([cats.id]),
    ]
    for other in (ben, store):
        assert (other.list_chats(), other.list_statements(), other.read_utterances()) == ((), (), ())
        for attempt in attempts:
            with pytest.raises(MissingError):
                attempt(other)
    assert len(ana.read_turns(chat)) == 1
    assert ana.list_statements() == (cats,)
    assert ben.add_statement("I have two cats.").id != cats.id


def test_stores_that_make_and_fill_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.sqlite"
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(Store, [path] * 4))
        chat = stores[0].start_chat("notes")

        def say(name: int) -> None:
            for n in range(10):
                stores[name].add_turn(chat, ChatTurn(f"{name} {n}", answered("?", "Bread.")))
                stores[name].add_statement(f"I said {name} {n}.")

        list(pool.map(say, range(4)))
    assert len(Store(path).read_turns(chat)) == len(Store(path).list_statements()) == 40
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"not a database at all, and long enough to be looked at" * 20, None])
def test_what_is_no_store_is_told_and_left_alone(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "kept.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(RunError, match=r"kept\.sqlite: cannot be used(.|\n)*--incognito"):
        Store(path)
    assert content is None or path.read_bytes() == content


def test_a_conversation_becomes_markdown_and_a_test_case(tmp_path: Path) -> None:
    turns = (
        ChatTurn("Which bread?", answered("Which bread?", "Rice bread.")),
        ChatTurn("Why?", answered("Why?", "Gluten.")),
    )
    begun = to_markdown(turns, "Bread", "notes", {}).partition("\n\n**Why?**")[0]
    assert begun == ("# Bread\n\n*Asked of notes.*\n\n**Which bread?**\n\nRice bread. [1]\n\n1. `bread.md:1-2`")
    later = ChatTurn("Why?", replace(turns[1].answered, query=Query("Why?", rewrite="Why rice bread?")))
    assert "**Why?**\n\n*Searched for: Why rice bread?*\n\nGluten" in to_markdown((later,), "Bread", "notes", {})
    written = to_topics(turns, [Statement("4", "I bake.")], 7, "Bread").decode()
    topics = read_topics(write(tmp_path / "topics.json", written))
    assert '"title": "Bread"' in written
    assert topics.edition == "ikat-2023"
    assert topics.turn_ids() == ["7-1_1", "7-1_2"]
    assert [statement.text for statement in topics.topics[0].ptkb] == ["I bake.", "I am vegetarian."]
    assert topics.labels["7-1_1"].statement_ids == ("2",)
    assert topics.labels["7-1_1"].passage_ids == ("bread.md:1-2",)
