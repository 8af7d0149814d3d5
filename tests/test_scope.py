"""Scopes: what a person may call a part of the documents, and that nothing else is searched then."""

import io
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from rich.console import Console

from agent.chat.interactive import Terminal
from agent.chat.scope import find_scope, find_scope_request, keep_to_scope
from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.serve.v1.requests import to_turns
from agent.terminal.progress import stage_progress
from indexes.documents.collection import Collection
from indexes.documents.document_index import open_documents
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import HybridRetriever, open_retriever
from indexes.ranking.vectors import Embedder
from indexes.storage.directories import find_cache_directory
from schemas.records import Message
from tests.conftest import needs_embedder, read_cases
from tests.serving import serving_source
from tests.test_chat import shown_after
from tests.within import convagent

FILES = {
    "bread.md": "The bread keeps for nine days.",
    "Travel/hotel.md": "The hotel in Lisbon costs 87 euros a night, with bread.",
    "Travel/maps/lisbon.txt": "The tram to the castle in Lisbon begins at the bread market.",
    "work/travel/costs.csv": "trip,euros\nThe train to Porto,41\n",
    "work/2024-mails.txt": "The mail of the baker says that the bread was late.",
    "work/2025-mails.txt": "The mail of the baker says that the bread is dear.",
    "heating.md": "# Heating\n\nThe heating needs 1.5 bar.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("notes")
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home


@pytest.fixture(scope="module")
def index(folder: Path, caches: Path) -> PassageIndex:
    return open_documents(folder, find_cache_directory(), None, stage_progress).index


@pytest.fixture
def collection(folder: Path, index: PassageIndex) -> Collection:
    return Collection(str(folder), index)


TRAVEL = ["Travel/hotel.md", "Travel/maps/lisbon.txt"]


def test_what_a_scope_names(collection: Collection) -> None:
    for scope, expected in read_cases("scopes")["cases"]:
        assert list(keep_to_scope(scope, collection).list_documents()) == expected, scope


def test_what_asks_for_a_scope(collection: Collection) -> None:
    for utterance, where in (
        ("only in travel/", "travel/"),
        ("Please search only in the folder maps from now on.", "the folder maps"),
        ("only the mails of 2025", "the mails of 2025"),
        ("/only *.pdf", "*.pdf"),
        ("only in travle/", "travle/"),
        ("Bitte suche nur im Ordner maps", "Ordner maps"),
        ("nur die Mails von 2025", "die Mails von 2025"),
        ("uniquement les mails de 2025, s'il te plaît", "les mails de 2025"),
        ("cerca solo in travel", "travel"),
        ("alleen in travel", "travel"),
        ("só na pasta maps", "pasta maps"),
        *(
            (everywhere, "")
            for everywhere in ("/everywhere", "Search everywhere again, please.", "in all my documents")
        ),
        *((everywhere, "") for everywhere in ("Jetzt wieder überall.", "partout", "en todo", "ovunque", "overal")),
        ("only in euros", None),
        ("only in travel?", None),
        ("Which hotel is only in travel?", None),
        ("en todo caso", None),
    ):
        assert find_scope_request(utterance, collection) == where, utterance


def test_a_scope_is_the_path_of_its_folder_and_may_not_be_empty(collection: Collection) -> None:
    found = [find_scope(where, collection) for where in ("the folder maps", "work/*", "the mails", "winter", "")]
    assert found == ["Travel/maps/", "work/", "the mails", None, ""]


def find_all(retriever: HybridRetriever) -> list[str]:
    return [hit.id for hit in retriever.find([("bread euros", 1.0)], [("bread euros", 1.0)], 3)]


def test_the_search_is_restricted_before_the_best_are_taken(tmp_path: Path) -> None:
    """A hundred passages that fit better are elsewhere, of which only three would be taken."""
    (tmp_path / "other").mkdir()
    for number in range(200):
        (tmp_path / "other" / f"{number}.txt").write_text(f"bread bread euros euros {number}")
    (tmp_path / "few.txt").write_text("A long text, of many words, in which there is bread at some place, once only.")
    collection = Collection(str(tmp_path), open_documents(tmp_path, find_cache_directory(), None, stage_progress).index)
    retriever = open_retriever(collection.index, None)
    assert not any(id.startswith("few") for id in find_all(retriever))
    rows = keep_to_scope("few.txt", collection).rows
    assert find_all(replace(retriever, rows=rows)) == ["few.txt:1"]


@needs_embedder
@pytest.mark.parametrize("has_vectors", [False, True])
def test_meaning_is_restricted_too(has_vectors: bool, folder: Path, minilm: Embedder) -> None:
    cache = find_cache_directory() / f"vectors-{has_vectors}"
    index = open_documents(folder, cache, minilm if has_vectors else None, stage_progress).index
    collection = Collection(str(folder), index)
    retriever = open_retriever(index, minilm)
    rows = keep_to_scope("Travel/", collection).rows
    assert rows is not None
    assert rows.sum() == 2
    found = replace(retriever, rows=rows).find([("bread", 1.0)], [("loaf", 1.0)], 50)
    assert {hit.id.partition(":")[0] for hit in found} == set(TRAVEL)
    nothing = replace(retriever, rows=np.zeros(len(index), bool))
    assert nothing.find([("bread", 1.0)], [("loaf", 1.0)], 50) == ()


@pytest.fixture
def terminal(folder: Path, index: PassageIndex) -> Terminal:
    assistant = open_assistant(open_collection(str(folder), index, None), "none")
    return Terminal(Session(assistant, Store(None)), Console(file=io.StringIO(), width=500))


QUESTION = "What is there about bread?"


def test_a_conversation_is_kept_to_its_scope_until_it_ends(terminal: Terminal) -> None:
    assert "] bread.md:1" in shown_after(terminal, QUESTION)
    assert "only in “Travel/”: 2 of my documents" in shown_after(terminal, "only in travel/")
    shown = shown_after(terminal, QUESTION)
    assert "(only in Travel/)" in shown
    assert "] Travel/" in shown
    assert "] bread.md" not in shown
    said = shown_after(terminal, "/only nowhere")
    assert "Nothing that I have is called “nowhere”: I go on searching where I did." in said
    assert "There are the folders Travel/, " in said
    assert "I have 2 documents: Travel/" in shown_after(terminal, "Which documents do you have?")
    session = terminal.session
    assert session.chat is not None
    resumed = Session.resume(session.assistant, session.store, session.chat)
    assert resumed.current_scope == "Travel/"
    assert all(hit.id.startswith("Travel/") for hit in resumed.ask(QUESTION).hits)
    shown_after(terminal, "/everywhere")
    shown = shown_after(terminal, QUESTION)
    assert "(only" not in shown
    assert "] bread.md:1" in shown
    shown_after(terminal, "/only work/*")
    assert "I still search only in “work/”; /everywhere ends that." in shown_after(terminal, "/new")
    assert "(only in work/)" in shown_after(terminal, QUESTION)
    shown_after(terminal, "/everywhere")
    assert "still" not in shown_after(terminal, "/new")
    assert "(only" not in shown_after(terminal, QUESTION)


def test_a_client_of_v1_that_said_so_is_kept_to_it(collection: Collection) -> None:
    for said, scopes in ((["only in travel/", "bread?"], ["Travel/", "Travel/"]), (["bread?"], ["work/"])):
        history = [message for text in said for message in (Message("user", text), Message("assistant", "..."))]
        assert [turn.scope for turn in to_turns(history, collection, "work/")] == scopes


def test_chat_only_from_its_first_question_and_of_nothing(folder: Path, tmp_path: Path) -> None:
    options = ("chat", "--docs", folder, "--model", "none", "--embedder", "none", "--only")
    data = str(tmp_path / "data")
    done = convagent(*options, "work/", text=f"{QUESTION}\n", CONVAGENT_DATA=data)
    assert "(only in work/)" in done.stdout
    assert "] bread.md" not in done.stdout
    done = convagent(*options, "sea/", text=f"{QUESTION}\n", CONVAGENT_DATA=data)
    assert done.returncode == 2
    assert "none of the documents is in 'sea/'" in done.stderr


def test_the_page_has_a_list_of_folders(folder: Path, tmp_path: Path) -> None:
    arguments = ("--model", "none", "--embedder", "none", "--only", "work")
    with serving_source("--docs", folder, tmp_path / "data", *arguments) as server, server.open_client() as client:

        def ask(question: str, **fields: str) -> httpx.Response:
            page = client.post("/ask", data={"question": question, **fields})
            while "data-working" in page.text:
                page = client.get(page.url)
            return page

        assert '<option value="work/" selected>only in work/</option>' in client.get("/").text
        page = ask(QUESTION, scope="Travel/")
        assert "<dt>Only in</dt><dd>Travel/</dd>" in page.text
        assert '<option value="Travel/" selected>' in page.text
        assert "bread.md:1" not in page.text
        chat = page.url.path.removeprefix("/chats/")
        assert ask(QUESTION, chat=chat).text.count("<dt>Only in</dt><dd>Travel/</dd>") == 2
        assert "bread.md:1" in ask("How long does the bread keep?", chat=chat, scope="").text
        assert "<dt>Only</dt><dd>of 2025: 1 January 2025 to " in ask("What do the mails of 2025 say of bread?").text
        assert '<option value="Travel/maps/" selected>' in ask("only in the folder maps", chat=chat, scope="").text
