"""Killed while it embeds or answers in a chat: bytes lost 0.

`make soak` kills each twenty times; runs and builds are in `tests/test_kills.py`.
"""

import shutil
import signal
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

from agent.chat.store import ChatTurn, Store
from indexes.index_vectors import PART_FILE, PART_INFO_FILE
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import VECTOR_INFO_FILE, VECTORS_FILE
from tests.conftest import PATIENCE, ROOT, needs_embedder
from tests.processes import environment, names, run, start, write_passages

FEW_OR_MANY = [1, pytest.param(20, marks=pytest.mark.soak)]
IN_SMALL_BLOCKS = "tests/small_blocks.py"
QUESTIONS = tuple(f"Which plants number {number} are safe for cats on a balcony?" for number in range(20))


@needs_embedder
@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_a_killed_embedding_goes_on_to_the_same_bytes(kills: int, tmp_path: Path) -> None:
    """Meanwhile the index has the vectors that it had, whole."""
    place, passages = tmp_path / "place", 96 if kills < 20 else 480
    corpus = write_passages(tmp_path / "passages.jsonl", "alder", passages)
    assert run("index", "build", corpus, "-o", place / "index", "--embedder", "minilm").returncode == 0
    embed = ("index", "embed", place / "index", "--embedder", "minilm", "--overwrite")
    assert run(*embed, script=IN_SMALL_BLOCKS).returncode == 0
    whole, before = contents(place / "index"), names(place / "index")
    random, part = Random(kills), place / "index" / PART_INFO_FILE  # noqa: S311
    for number in range(1, kills + 1):
        with start(*embed, script=IN_SMALL_BLOCKS) as process:
            wait_for_blocks(part, max(1, number * (passages // 8 - 2) // kills), process)
            time.sleep(random.uniform(0, 0.05))
            process.kill()
        assert contents(place / "index") == whole, "the old vectors are not what they were"
        with (place / "index" / PART_FILE).open("ab") as half:
            half.write(b"half a block")
    done = run(*embed, script=IN_SMALL_BLOCKS)
    assert done.returncode == 0
    assert f"of {passages} passages" in done.stderr
    assert contents(place / "index") == whole
    assert names(place / "index") == before


def contents(index: Path) -> Sequence[bytes]:
    """An index's vectors, as they are on the disk."""
    return [(index / name).read_bytes() for name in (VECTORS_FILE, VECTOR_INFO_FILE)]


def wait_for_blocks(part: Path, blocks: int, process: "subprocess.Popen[str]") -> None:
    while not part.exists() or len(msgspec.json.decode(part.read_bytes())["blocks"]) < blocks:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.001)


@pytest.mark.soak
@needs_embedder
def test_an_interrupted_embedding_says_how_to_go_on(tmp_path: Path) -> None:
    index = tmp_path / "index"
    corpus = write_passages(tmp_path / "passages.jsonl", "alder", 96)
    assert run("index", "build", corpus, "-o", index, "--embedder", "none").returncode == 0
    embed = ("index", "embed", index, "--embedder", "minilm")
    with start(*embed, script=IN_SMALL_BLOCKS) as process:
        wait_for_blocks(index / PART_INFO_FILE, 2, process)
        process.send_signal(signal.SIGSTOP)  # it holds the index for as long as is needed
        other = run(*embed)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        _, told = process.communicate(timeout=PATIENCE)
    assert other.returncode == 2
    assert "another process is embedding this index\n  Wait for it" in other.stderr
    assert process.returncode == 130
    assert "passages are embedded and kept; `convagent index embed` goes on after them" in told
    assert run("search", index, "alder", "--embedder", "none").returncode == 0
    assert "goes on after" in run(*embed, script=IN_SMALL_BLOCKS).stderr
    assert "96 vectors are whole" in run("index", "verify", index, script=IN_SMALL_BLOCKS).stdout
    assert "96 passages embedded" in run(*embed, script=IN_SMALL_BLOCKS).stderr


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
