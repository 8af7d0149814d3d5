"""Asking at once: documents are searched by words while their vectors are made."""

import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pexpect
import pytest

from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.terminal.progress import stage_progress
from indexes.documents.document_index import open_documents
from indexes.documents.watching import CurrentCollection, make_vectors_meanwhile, watch_documents
from indexes.index_vectors import cache_vectors
from indexes.ranking.vectors import Embedder, Vectors
from indexes.storage.directories import find_cache_directory
from tests.conftest import PATIENCE, ROOT, needs_embedder, own_settings_left_out
from tests.test_watching import KEEPS, wait_until
from tests.within import convagent

pytestmark = needs_embedder


class CountingEmbedder:
    """The real one, which counts its texts and can be held up."""

    def __init__(self, embedder: Embedder) -> None:
        self._real = embedder
        self.embedder = replace(embedder, embed=self.embed)
        self.texts: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.may_go_on.wait()
        self.texts += texts
        return self._real.embed(texts)


@pytest.fixture
def counting(minilm: Embedder, tmp_path: Path) -> CountingEmbedder:
    return CountingEmbedder(replace(minilm, digest=f"{minilm.digest} {tmp_path}"))  # none is in the cache of vectors


def write_notes(folder: Path, count: int) -> Path:
    folder.mkdir()
    (folder / "bread.md").write_text("# Bread\n\nThe bread keeps for nine days.\n")
    for number in range(count):
        (folder / f"{number}.txt").write_text(f"Plot {number} of {folder} has birches in row {number % 7}.\n")
    return folder


def open_by_words(folder: Path, embedder: Embedder) -> CurrentCollection:
    index = open_documents(folder, find_cache_directory(), None, stage_progress).index
    return open_collection(str(folder), index, embedder, words_first=True)


def count_vectors(current: CurrentCollection) -> int:
    """How many vectors it is searched by."""
    vectors = current.searchable.retriever.vectors
    return len(vectors) if isinstance(vectors, np.ndarray) else 0


def test_the_first_question_does_not_wait_for_vectors(tmp_path: Path, counting: CountingEmbedder) -> None:
    current = open_by_words(write_notes(tmp_path / "notes", 20), counting.embedder)
    shown: list[str] = []
    current.on_progress = shown.append
    counting.may_go_on.clear()
    with make_vectors_meanwhile(current, counting.embedder):
        found = current.searchable.retriever.find([("bread", 1.0)], [("bread", 1.0)], 5)
        assert [hit.id for hit in found] == ["bread.md:1-3"]
        assert count_vectors(current) == 0
        counting.may_go_on.set()
        wait_until(lambda: count_vectors(current) == 21)
        found = current.searchable.retriever.find([("bread", 1.0)], [("bread", 1.0)], 5)
        assert len(found) == 5
    assert shown == [
        *(f"I search by words until all vectors are made: {done} of 21 passages" for done in (0, 8, 16, 21)),
        "",
    ]
    assert count_vectors(open_by_words(tmp_path / "notes", counting.embedder)) == 21


def test_nothing_is_embedded_while_somebody_waits_and_the_end_keeps_what_there_is(
    tmp_path: Path, counting: CountingEmbedder
) -> None:
    current = open_by_words(write_notes(tmp_path / "notes", 100), counting.embedder)
    with current.use():
        with make_vectors_meanwhile(current, counting.embedder):
            wait_until(lambda: current.progress)
        assert counting.texts == []
    counting.may_go_on.clear()
    with make_vectors_meanwhile(current, counting.embedder):
        current.replaced.set()
        wait_until(lambda: current.progress)
        counting.may_go_on.set()
        wait_until(lambda: counting.texts)
    embedded = list(counting.texts)
    assert 0 < len(embedded) < 101
    current = open_by_words(tmp_path / "notes", counting.embedder)
    with make_vectors_meanwhile(current, counting.embedder):
        wait_until(lambda: count_vectors(current) == 101)
    assert len(counting.texts) == len(set(counting.texts)) == 101


def test_through_a_pipe_vectors_come_first(tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "notes", 3)
    done = convagent(
        *("chat", "--docs", folder, "--model", "none"), text=f"{KEEPS}\n", CONVAGENT_DATA=str(tmp_path / "data")
    )
    assert "nine days" in done.stdout
    index = open_documents(folder, find_cache_directory(), None, stage_progress).index
    assert [info.passages for info in index.vector_infos] == [4]


def test_the_terminal_shows_progress_below_the_prompt_and_ends_at_once(tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "notes", 400)
    person = own_settings_left_out() | {"CONVAGENT_DATA": str(tmp_path / "data"), "NO_COLOR": "1", "TERM": "xterm"}
    command = [str(ROOT / "cli.py"), "chat", "--docs", str(folder), "--model", "none"]
    child = pexpect.spawn(sys.executable, command, env=person, dimensions=(30, 120), encoding="utf-8", timeout=PATIENCE)
    try:
        child.expect(re.escape("\x1b[6n"))  # the terminal is asked where its cursor is
        child.send("\x1b[3;1R")
        child.expect(r"I search by words until all vectors are made: \d+ of 401 passages")
        child.send(f"{KEEPS}\r")
        child.expect("nine days")
        child.expect(re.escape("\x1b[6n"))
        child.send("\x1b[9;1R/quit\r")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0
    finally:
        child.close(force=True)


def test_where_documents_are_many_the_newest_are_read_first_and_the_others_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexes.documents.watching.SHOWN_SECONDS", 0.0)
    monkeypatch.setattr("indexes.documents.document_index.FEW", 15)
    folder = write_notes(tmp_path / "notes", 20)
    for path in folder.glob("*.txt"):
        os.utime(path, (1, 1))
    first = open_documents(folder, find_cache_directory(), None, stage_progress, 0.0)
    assert "bread.md" in first.reading.read
    assert (len(first.reading.read), first.reading.waiting) == (16, 5)
    current = open_collection(str(folder), first.index, None, words_first=True)
    told: list[str] = []
    shown: list[str] = []
    current.tell, current.on_progress = told.append, shown.append
    assert "nine days" in Session(open_assistant(current, "none"), Store(None)).ask(KEEPS).response.text
    with watch_documents(current, None):
        wait_until(lambda: len(current.collection.index) == 21 and told)
    assert len(told) == 1
    assert told[0].startswith("new: ")
    assert told[0].endswith(", and 2 more")
    assert "I am still reading: 5 of 21 documents" in shown
    assert shown[-1] == ""
    again = open_documents(folder, find_cache_directory(), None, stage_progress, 0.0)
    assert again.reading.waiting == 0


def test_of_too_many_passages_those_found_get_vectors(
    tmp_path: Path, counting: CountingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexes.documents.watching.MAX_UNASKED", 10)
    embedder = cache_vectors(counting.embedder)
    current = open_by_words(write_notes(tmp_path / "notes", 30), embedder)
    with make_vectors_meanwhile(current, embedder):
        wait_until(lambda: not current.searchable.lacks_vectors)
    assert (count_vectors(current), counting.texts) == (0, [])
    for asked in range(2):
        current.searchable.retriever.find([("plot 7", 1.0)], [(f"plot 7 {asked}", 1.0)], 5)
    assert len(counting.texts) == len(set(counting.texts)) <= 33
