"""Dates of documents: what they are taken from, and questions that name them."""

import io
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from agent.chat.dated_documents import find_listing, find_restriction, list_items
from agent.chat.interactive import Terminal
from agent.chat.scope import keep_to_scope
from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from indexes.documents.collection import Collection
from indexes.documents.document_index import open_documents
from indexes.passage_index import PassageIndex
from indexes.text.dates import find_period, read_date
from tests.conftest import no_progress, read_cases
from tests.test_chat import shown_after

TODAY = date(2026, 11, 22)  # a Sunday
CASES = read_cases("dates")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("dated")
    for name, text in CASES["files"].items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
        moment = datetime.fromisoformat(f"{CASES['changed'].get(name, '2026-06-01')}T12:00:00").timestamp()
        os.utime(home / name, (moment, moment))
    return home


@pytest.fixture(scope="module")
def index(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    cache = tmp_path_factory.mktemp("cache")
    return open_documents(folder, cache, None, no_progress).index


@pytest.fixture
def collection(folder: Path, index: PassageIndex) -> Collection:
    return Collection(str(folder), index, today=lambda: TODAY)


@pytest.fixture
def shown(folder: Path, index: PassageIndex, collection: Collection) -> Callable[[str], str]:
    assistant = open_assistant(open_collection(str(folder), index, None), "none")
    assistant.current.replace(collection)
    console = Console(file=io.StringIO(), width=500)
    return partial(shown_after, Terminal(Session(assistant, Store(None)), console))


def test_the_date_in_a_name_or_title() -> None:
    for text, expected in CASES["names"]:
        assert read_date(text) == expected, text


def test_the_days_that_words_name() -> None:
    for text, words, period in CASES["days"]:
        found = find_period(text, TODAY)
        assert (text[found.start : found.end], str(found.period)) == (words, period) if found else not words, text


def test_the_latest_of_a_kind(shown: Callable[[str], str]) -> None:
    mast = "The mast (10 November 2026, from Anna Berg)"
    for question, opening, says in (
        ("What is the latest mail from Anna about?", mast, "The mast of the boat broke"),
        ("what is the oldest mail from Anna Berg", "The boat (3 March 2025, from Anna Berg)", "painted green"),
        ("Show me the last mail", mast, "broke in the storm"),
        ("What's the latest message about chess?", "Clubs (5 January 2026, from Ben Roth)", "town hall"),
        ("Which is the newest document about heating?", "heating.txt (changed on 12 November 2026)", "2 bar now"),
        ("Worum geht es in der neuesten Mail von Anna?", mast, "The mast of the boat"),
        ("What was agreed at the latest meeting?", "meeting-2026-02-02.md (2 February 2026)", "gate"),
        ("What is the latest mail of 2025 about?", "The boat (3 March 2025, from Anna Berg)", "painted green"),
    ):
        said = shown(question)
        assert opening in said.split("\n"), question
        assert says in said
        assert "from: " not in said


def test_a_question_is_asked_of_the_documents_of_a_date_and_others_as_ever(shown: Callable[[str], str]) -> None:
    for question, within, says in CASES["restricted"]:
        said = shown(question)
        assert f"(only {within}" in said, question
        assert says in said
    for question, says in CASES["others"]:
        said = shown(question)
        assert says in said, question
        assert "(only" not in said


def test_the_documents_of_some_days_are_listed(shown: Callable[[str], str], collection: Collection) -> None:
    for question, reply in CASES["listed"]:
        assert reply in shown(question), question
    for question in ("What happened yesterday?", "What changed in 2024?", "last week"):
        assert (find_listing(question, collection), find_restriction(question, collection)) == (None, None)


def find_ids(scope: str, collection: Collection) -> list[str]:
    return collection.index.get_ids(keep_to_scope(scope, collection).list_numbers())


def test_a_scope_of_days_lasts(shown: Callable[[str], str], collection: Collection) -> None:
    assert find_ids("the mails of 2025", collection) == ["mails/boat.eml:message", "mails/club.mbox:message1"]
    assert set(keep_to_scope("2025", collection).list_documents()) == {
        "mails/boat.eml",
        "mails/club.mbox",
        "meeting-2025-03-11.md",
    }
    assert find_ids("last week", collection) == ["heating.txt:1", "mails/keys.eml:message", "mails/mast.eml:message"]
    assert "only in “the mails of 2025”: 2 of my documents" in shown("only the mails of 2025")
    for _ in range(2):
        assert "library" in shown("Where do we play chess?")
    assert "painted green" in shown("What is the latest mail about?")
    assert "only in “2026”" in shown("/only 2026")
    said = shown("Where do we play chess?")
    assert "town hall" in said
    assert "(only in 2026)" in said
    shown("/only meeting*")
    assert "mast" not in shown("What is the latest mail about?")
    assert "gate red" in shown("What is the newest note about?")
    shown("/only club.mbox")
    assert "town hall" in shown("Where do we play chess, according to the latest mail?")


def test_a_touched_file_is_as_new_as_it_is(collection: Collection, folder: Path) -> None:
    """The time is looked at when it is asked for: a file that is only touched is not read again."""
    os.utime(folder / "course.txt", (1_700_000_000, 1_700_000_000))
    (item,) = [item for item in list_items(collection) if item.name == "course.txt"]
    assert item.describe() == "course.txt (changed on 14 November 2023)"
    (gone,) = [item for item in list_items(replace(collection, source="/nowhere")) if item.name == "course.txt"]
    assert (gone.period, gone.order, gone.describe()) == (None, "", "course.txt")
