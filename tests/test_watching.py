"""Documents that change while a program runs: with real files, the real watch, and a real server."""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from agent.chat.session import Assistant, Observer, Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.terminal.progress import stage_progress
from indexes.documents.document_index import open_documents
from indexes.documents.watching import DocumentWatcher, explain_polling, watch_documents
from indexes.storage.directories import find_cache_directory
from schemas.records import Call
from tests.conftest import PATIENCE
from tests.serving import serving_source

KEEPS = "How long does the bread keep?"
NOTICED_SECONDS = 10.0  # within which a change must be found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    (notes / "travel").mkdir(parents=True)
    (notes / "bread.md").write_text("# Bread\n\nThe bread keeps for nine days.\n")
    (notes / "travel" / "hotel.md").write_text("# Hotel\n\nThe room costs 87 euros a night.\n")
    return notes


@contextmanager
def watching(source: Path) -> Iterator[tuple[Assistant, list[str]]]:
    """An assistant over a folder that is watched, and what is told."""
    told: list[str] = []
    index = open_documents(source, find_cache_directory(), None, stage_progress).index
    current = open_collection(str(source), index, None)
    current.tell = told.append
    with watch_documents(current, None) as watcher:
        watcher.has_begun.wait(PATIENCE)
        yield open_assistant(current, "none"), told


def answer(assistant: Assistant, question: str = KEEPS) -> str:
    return Session(assistant, Store(None)).ask(question).response.cited_text


def wait_until(holds: Callable[[], object], seconds: float = PATIENCE) -> None:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "not noticed"
        time.sleep(0.1)


def test_changed_new_and_deleted_documents_are_noticed(folder: Path) -> None:
    with watching(folder) as (assistant, told):
        assert "nine days" in answer(assistant)
        (folder / "bread.new").write_text("# Bread\n\nThe bread keeps for twelve days.\n")  # of no known kind
        (folder / "bread.new").replace(folder / "bread.md")  # as many an editor does
        wait_until(lambda: "twelve days" in answer(assistant), NOTICED_SECONDS)
        (folder / ".hidden.md").write_text("x")
        (folder / "jam").mkdir()
        (folder / "jam" / "plum.txt").write_text("The plum jam fills seven jars.\n")
        wait_until(lambda: "seven jars" in answer(assistant, "How many jars of plum jam?"), NOTICED_SECONDS)
        (folder / "bread.md").unlink()
        wait_until(lambda: "twelve" not in answer(assistant), NOTICED_SECONDS)
        wait_until(lambda: told == ["read again: bread.md", "new: jam/plum.txt", "gone: bread.md"])
        (folder / "new.json").write_text("{")
        wait_until(lambda: told[3:] and told[3].startswith("left out: new.json: "), NOTICED_SECONDS)
        (folder / "bread.md").write_text("Bread again.\n")
        wait_until(lambda: told[4:] == ["new: bread.md"], NOTICED_SECONDS)
    assert "watching" not in {thread.name for thread in threading.enumerate()}


def test_a_thousand_changes_at_once_are_one_rebuild(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexes.documents.watching.QUIET_SECONDS", 1.0)  # for a machine that is busy
    monkeypatch.setattr("indexes.documents.watching.LONGEST_BURST_SECONDS", PATIENCE)
    many = [folder / f"note-{number}.txt" for number in range(1000)]
    for number, path in enumerate(many):
        path.write_text(f"Plot {number} has birches.\n")
    with watching(folder) as (assistant, told):
        for number, path in enumerate(many):
            path.write_text(f"Plot {number} has larches.\n")
        wait_until(lambda: told)
        assert "larches" in answer(assistant, "What does plot 999 have?")
    assert told == ["read again: note-0.txt, note-1.txt, note-10.txt, and 997 more"]


def test_a_folder_that_goes_away_and_comes_back(folder: Path) -> None:
    with watching(folder) as (assistant, told):
        folder.rename(folder.with_name("elsewhere"))
        wait_until(lambda: not answer(assistant), NOTICED_SECONDS)
        assert assistant.collection.describe() == "I have no documents now."
        assert told == [f"{folder}: no such folder or file"]
        folder.with_name("elsewhere").rename(folder)
        wait_until(lambda: "nine days" in answer(assistant), NOTICED_SECONDS)
        (folder / "bread.md").write_text("The bread keeps for twelve days.\n")
        wait_until(lambda: "twelve days" in answer(assistant), NOTICED_SECONDS)


def test_an_answer_in_hand_keeps_the_documents_that_it_began_with(folder: Path) -> None:
    with watching(folder) as (assistant, told):
        session = Session(assistant, Store(None))

        def replace_document(call: Call) -> None:
            if call.step == "search" and not told:
                (folder / "bread.md").write_text("The bread keeps for twelve days.\n")
                wait_until(lambda: told)

        answered = session.ask(KEEPS, Observer(replace_document))
        assert "nine days" in answered.response.text
        assert "twelve days" in session.ask(KEEPS).response.text
        (passage,) = {passage.id: passage for passage in answered.passages if "nine" in passage.text}.values()
        assert assistant.collection.explain_change(passage) == "the file has changed since"
        (unchanged,) = (p for p in assistant.collection.index.read(["travel/hotel.md:1-3"]))
        assert assistant.collection.explain_change(unchanged) == ""
        (folder / "bread.md").unlink()
        wait_until(lambda: assistant.collection.explain_change(passage) == "the file is gone", NOTICED_SECONDS)


def test_a_network_folder_is_looked_at_again_and_again_which_is_said_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explain_polling(folder) == ""
    kinds = {part.fstype for part in psutil.disk_partitions(all=True)}
    monkeypatch.setattr("indexes.documents.watching.NETWORK_FILE_SYSTEMS", kinds)
    with watching(folder) as (assistant, told):
        (folder / "bread.md").write_text("The bread keeps for twelve days.\n")
        wait_until(lambda: "twelve days" in answer(assistant), NOTICED_SECONDS)
    assert "is on a network file system" in told[0]
    assert told[0].endswith("I look for changed documents every 2 seconds.")
    assert told[1:] == ["read again: bread.md"]


def test_a_limit_of_the_system_is_a_reason_to_look_instead(folder: Path) -> None:
    index = open_documents(folder, find_cache_directory(), None, stage_progress).index
    watcher = DocumentWatcher(open_collection(str(folder), index, None), None, folder)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(free := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))  # no file can be opened, and no watch
    try:
        reason = watcher.follow_until_ended(polling=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert reason.startswith(f"{folder} cannot be watched (")


def test_a_server_notices_marks_old_sources_and_ends(folder: Path, tmp_path: Path) -> None:
    with (
        serving_source("--docs", folder, tmp_path / "data", "--model", "none", "--embedder", "none") as server,
        server.open_client() as client,
    ):

        def ask(chat: str = "") -> httpx.Response:
            page = client.post("/ask", data={"question": KEEPS, "chat": chat})
            while "data-working" in page.text:
                page = client.get(page.url)
            return page

        page = ask()
        assert "nine days" in page.text
        assert "changed since" not in page.text
        (folder / "bread.md").write_text("# Bread\n\nThe bread keeps for twelve days.\n")
        wait_until(lambda: "the file has changed since" in client.get(page.url).text, NOTICED_SECONDS)
        after = ask(page.url.path.removeprefix("/chats/")).text
        assert "twelve days" in after
        assert "nine days" in after
        assert after.count("changed since") == 1
        (folder / "bread.md").unlink()
        wait_until(lambda: client.get(page.url).text.count("the file is gone") == 2, NOTICED_SECONDS)
        began = time.monotonic()
        assert server.interrupt() == 0
        assert time.monotonic() - began < PATIENCE / 10
