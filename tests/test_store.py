"""What is kept of a person: nothing is lost, nothing is half there, and nothing at all in incognito."""

import threading
from pathlib import Path

import pytest

from agent.chat.export import to_markdown, to_topics
from agent.chat.store import ChatTurn, Store
from agent.tracks.topic_files import read_topics
from schemas.errors import ConvagentError, MissingError, RunError, UsageError
from schemas.records import Hit, Passage, Query, Response, ScoredStatement, Sentence, Statement, TurnResult
from tests.test_topics import write


def answered(question: str, reply: str, number: int = 1) -> TurnResult:
    passage = Passage("bread.md:1-2", reply)
    chosen = (ScoredStatement(Statement("1", "I am vegetarian."), 0.7),)
    response = Response((Sentence(reply, (passage.id,)),))
    return TurnResult(f"1_{number}", Query(question), chosen, (Hit(passage.id, 2.0),), (passage,), (response,))


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(tmp_path / "new" / "kept.sqlite" if request.param == "file" else None)


def test_a_conversation_is_kept_found_and_forgotten(store: Store) -> None:
    chat, other = store.begin("notes"), store.begin("recipes")
    first, second = answered("Which bread?", "Rice bread."), answered("How long?", "Two days.", 2)
    store.add(chat, "Which bread?", first)
    store.add(other, "What is 100 % rye?", answered("What is 100 % rye?", "A dark loaf."))
    store.add(chat, "How long?", second)
    assert store.turns(chat) == (ChatTurn("Which bread?", first), ChatTurn("How long?", second))
    assert [(found.id, found.title, found.turns) for found in store.chats()] == [
        (other, "What is 100 % rye?", 1),
        (chat, "Which bread?", 2),
    ]
    assert [found.id for found in store.chats("TWO days")] == [chat]
    assert [found.id for found in store.chats("100 %")] == [other]
    assert store.chats("100 days") == ()
    assert store.source(other) == "recipes"
    store.forget(other)
    assert [found.id for found in store.chats()] == [chat]
    for gone in (lambda: store.turns(other), lambda: store.forget(other), lambda: store.source(other)):
        with pytest.raises(MissingError, match=f"there is no conversation {other}"):
            gone()


def test_what_was_asked_comes_back_until_it_is_forgotten(store: Store) -> None:
    chat = store.begin("notes")
    store.add(chat, "Which bread?", answered("Which bread?", "Rice bread."))
    assert store.utterances() == ("Which bread?",)
    store.forget(chat)
    assert store.utterances() == ()
    with pytest.raises(MissingError, match="there is no conversation 1 any more"):
        store.add(chat, "How long?", answered("How long?", "Two days."))
    with pytest.raises(MissingError, match="there is no such number"):
        store.turns(10**20)


def test_statements_are_said_changed_and_unlearned(store: Store) -> None:
    cats = store.remember("  I have\ntwo cats. ")
    assert store.remember("I have two cats.") == cats
    bread = store.remember("I bake.")
    assert store.statements() == (Statement(cats.id, "I have two cats."), bread)
    assert store.change(bread.id, "I bake bread.").text == "I bake bread."
    with pytest.raises(MissingError, match="there is no statement 99"):
        store.delete_statements([cats.id, "99"])
    assert len(store.statements()) == 2
    store.delete_statements([cats.id])
    assert [statement.text for statement in store.statements()] == ["I bake bread."]
    with pytest.raises(UsageError, match="a statement needs words"):
        store.remember("  ")
    with pytest.raises(MissingError, match="there is no statement 99"):
        store.change("99", "I sing.")


def test_a_file_is_found_again_and_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.sqlite"
    Store(path).remember("I bake.")
    assert [statement.text for statement in Store(path).statements()] == ["I bake."]
    assert path.parent.stat().st_mode & 0o077 == 0


def test_incognito_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(None)
    store.add(store.begin("notes"), "Which bread?", answered("Which bread?", "Rice bread."))
    assert list(tmp_path.iterdir()) == []


def test_threads_and_stores_on_one_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    chat = Store(path).begin("notes")

    def say(name: int) -> None:
        store = Store(path)
        for n in range(10):
            store.add(chat, f"{name} {n}", answered("?", "Bread."))
            store.remember(f"I said {name} {n}.")

    threads = [threading.Thread(target=say, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Store(path).turns(chat)) == 40
    assert len(Store(path).statements()) == 40


@pytest.mark.parametrize("content", [b"not a database at all, and long enough to be looked at" * 20, None])
def test_what_is_no_store_is_told_and_left_alone(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "kept.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(RunError, match=r"kept\.sqlite: cannot be used") as error:
        Store(path)
    assert isinstance(error.value, ConvagentError)
    assert "--incognito" in str(error.value)
    assert content is None or path.read_bytes() == content


def test_a_conversation_becomes_markdown_and_a_test_case(tmp_path: Path) -> None:
    turns = (
        ChatTurn("Which bread?", answered("Which bread?", "Rice bread.")),
        ChatTurn("Why?", answered("Why?", "Gluten.")),
    )
    begun = to_markdown(turns, "notes").partition("\n\n**Why?**")[0]
    assert begun == ("# Which bread?\n\n*Asked of notes.*\n\n**Which bread?**\n\nRice bread. [1]\n\n1. `bread.md:1-2`")
    topics = read_topics(write(tmp_path / "topics.json", to_topics(turns, [Statement("4", "I bake.")], 7).decode()))
    assert topics.edition == "ikat-2023"
    assert topics.turn_ids() == ["7-1_1", "7-1_2"]
    assert [statement.text for statement in topics.topics[0].ptkb] == ["I bake.", "I am vegetarian."]
    assert topics.labels["7-1_1"].statement_ids == ("2",)
    assert topics.labels["7-1_1"].passage_ids == ("bread.md:1-2",)
