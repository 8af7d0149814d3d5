"""Killed while it embeds, answers in a chat, or brings a store up to date: bytes lost 0.

`make soak` kills each twenty times; runs and builds are in `tests/test_kills.py`.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import pytest

from agent.chat.store import VERSION, ChatTurn, Store
from indexes.index_verification import verify_index
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import VECTORS_FILE
from tests.conftest import ROOT, needs_embedder
from tests.processes import environment, killed_after, names, run, write_passages
from tests.test_store import TURN_OF_VERSION_1, VERSION_1

FEW_OR_MANY = [2, pytest.param(20, marks=pytest.mark.soak)]
QUESTIONS = tuple(f"Which plants number {number} are safe for cats on a balcony?" for number in range(20))


@needs_embedder
@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_a_killed_embedding_leaves_an_index_without_vectors_or_with_all(kills: int, tmp_path: Path) -> None:
    place = tmp_path / "place"
    corpus = write_passages(tmp_path / "passages.jsonl", "alder", 100)
    assert run("index", "build", corpus, "-o", place / "index", "--embedder", "none").returncode == 0
    embed = ("index", "embed", place / "index", "--embedder", "minilm")
    started = time.perf_counter()
    assert run(*embed).returncode == 0
    took = time.perf_counter() - started
    whole = (place / "index" / VECTORS_FILE).read_bytes()
    before = names(place / "index")
    random, killed = Random(kills), 0  # noqa: S311
    while killed < kills:
        killed += killed_after(random.uniform(0.3, 1.05) * took, *embed)
        found = verify_index(place / "index")
        assert (found.passages, found.vectors in (0, 100)) == (100, True)
    assert run(*embed).returncode == 0
    assert (place / "index" / VECTORS_FILE).read_bytes() == whole
    assert names(place / "index") == before


def talk(index: Path, data: Path) -> "subprocess.Popen[str]":
    """A chat that is asked all questions at once."""
    options = ("--index", str(index), "--model", "none", "--embedder", "none")
    command = [sys.executable, str(ROOT / "cli.py"), "chat", *options]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, env=environment(CONVAGENT_DATA=str(data)), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdin
    process.stdin.write("\n".join(QUESTIONS) + "\n")
    process.stdin.close()
    return process


def kept_turns(data: Path) -> Sequence[ChatTurn]:
    store = Store(data / "convagent.sqlite")
    with closing(sqlite3.connect(data / "convagent.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    chats = store.list_chats()
    return store.read_turns(chats[0].id) if chats else ()


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_every_answer_that_was_shown_is_kept(kills: int, example_index: PassageIndex, tmp_path: Path) -> None:
    with talk(example_index.directory, tmp_path / "whole") as process:
        assert process.stdout
        process.stdout.read()
    whole = kept_turns(tmp_path / "whole")
    assert [turn.utterance for turn in whole] == list(QUESTIONS)
    random = Random(kills)  # noqa: S311
    for number in range(kills):
        data = tmp_path / f"killed{number}"
        with talk(example_index.directory, data) as process:
            assert process.stdout
            shown = [process.stdout.readline()]  # the first answer has begun
            time.sleep(random.uniform(0, 0.4))
            process.kill()
            shown += process.stdout.readlines()
        kept = kept_turns(data)
        assert [encode(turn) for turn in kept] == [encode(turn) for turn in whole[: len(kept)]]
        assert sum(line.startswith("searched for") for line in shown) <= len(kept) + 1  # the last was in the making
        assert names(data) <= {"convagent.sqlite"}
        shutil.rmtree(data)


def encode(turn: ChatTurn) -> bytes:
    return msgspec.json.encode(turn)


def make_large_store(path: Path, turns: int) -> None:
    """A store of version 1 whose migration takes a while."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(VERSION_1)
        turn = {**TURN_OF_VERSION_1, "without_model": "x" * 2000}
        rows = ((number, json.dumps({**turn, "turn_id": f"1_{number}"})) for number in range(1, turns + 1))
        database.executemany("INSERT INTO turns VALUES (1, ?, 'Which bread?', 'Rice bread.', ?)", rows)


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_a_store_is_migrated_whole_or_not_at_all(kills: int, tmp_path: Path) -> None:
    turns, random, killed = 5000, Random(kills), 0  # noqa: S311
    make_large_store(tmp_path / "old" / "convagent.sqlite", turns)
    original = tmp_path / "old" / "convagent.sqlite"
    data = tmp_path / "data"
    shutil.copytree(tmp_path / "old", data)
    started = time.perf_counter()
    assert run("chats", CONVAGENT_DATA=str(data)).returncode == 0
    took = time.perf_counter() - started
    with closing(sqlite3.connect(data / "convagent.sqlite")) as database:
        migrated = database.execute("SELECT * FROM turns").fetchall()
    versions = set()
    while killed < kills:
        shutil.copy(original, data)
        killed += killed_after(random.uniform(0.3, 1) * took, "chats", CONVAGENT_DATA=str(data))
        with closing(sqlite3.connect(data / "convagent.sqlite")) as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            found = database.execute("SELECT * FROM turns").fetchall()
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        versions.add(version)
        assert (version, len(found)) in ((1, turns), (VERSION, turns))
        assert version == 1 or found == migrated
        assert len(Store(data / "convagent.sqlite").read_turns(1)) == turns
    assert versions <= {1, VERSION}
