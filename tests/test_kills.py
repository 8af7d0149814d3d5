"""Killed at any moment: nothing that was finished is lost, nothing is there by half, and nothing is left lying about.

`make soak` runs the long ones.
"""

import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from agent.chat.store import ChatTurn, Store
from indexes.documents.parse_cache import ParseCache
from indexes.documents.reading import ParsedDocument
from indexes.index_vectors import PART_FILE, PART_INFO_FILE
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import VECTOR_INFO_FILE, VECTORS_FILE
from tests.conftest import EXAMPLES, PATIENCE, needs_embedder
from tests.processes import TREES, killed_after, names, run, signalled, start, write_passages, write_script

FEW_OR_MANY = [1, pytest.param(20, marks=pytest.mark.soak)]
MADE = {"run.json", "run.trace.jsonl"}
IN_SMALL_BLOCKS = "tests/small_blocks.py"
QUESTIONS = tuple(f"Which plants number {number} are safe for cats on a balcony?" for number in range(20))


@dataclass(frozen=True, slots=True)
class Task:
    """Topics to be answered into a directory of their own."""

    model: str
    index: Path
    place: Path
    cache: Path

    def call(self, *more: str, name: str = "run.json") -> Sequence[str | Path]:
        (self.place / name).parent.mkdir(parents=True, exist_ok=True)
        given = (EXAMPLES / "topics.json", "-i", self.index, "-m", self.model, "--embedder", "none", "-k", "50")
        steps = ("--query", "context,hyde,previous")  # every step that a model has
        return ("answer", *given, *steps, "--no-cache", "-o", self.place / name, *more)

    def kill(self, kills: int, shortest: float, longest: float) -> None:
        """Kill and resume until it was killed so often, then finish. What is finished before is begun anew."""
        random, run_file, killed = Random(kills), self.place / "run.json", 0  # noqa: S311
        while killed < kills or not run_file.exists():
            seconds = random.uniform(shortest, longest) if killed < kills else 600
            if killed_after(seconds, *self.call("--resume"), CONVAGENT_CACHE=str(self.cache)):
                killed += 1
                continue
            assert run_file.read_bytes() == (self.place / "whole" / "run.json").read_bytes()
            assert names(self.place) == MADE | {"whole"}
            if killed < kills:
                for name in MADE:
                    (self.place / name).unlink()
        assert not list(self.cache.rglob("*.tmp"))


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_a_killed_run_goes_on_to_the_same_bytes(kills: int, example_index: PassageIndex, tmp_path: Path) -> None:
    script = write_script(tmp_path / "script.json")
    task = Task(f"scripted:{script}", example_index.directory, tmp_path / "place", tmp_path / "cache")
    started = time.perf_counter()
    assert run(*task.call(name="whole/run.json"), CONVAGENT_CACHE=str(task.cache)).returncode == 0
    took = time.perf_counter() - started
    task.kill(kills, 0.3 * took, took)


def whole_generation(index: Path, passages: int) -> str:
    """Which tree's passages an index holds. All of them, and no other's."""
    opened = PassageIndex(index)
    found = {tree: len(opened.search([(tree, 1.0)], passages)) for tree in TREES}
    assert sorted(found.values()) == [0, passages] == [0, len(opened)]
    [tree] = (tree for tree in TREES if found[tree])
    assert opened.read(["p0"])[0].text.startswith(f"The {tree} number 0 ")
    return tree


@pytest.mark.parametrize("events", ["os.rename", pytest.param("", marks=pytest.mark.soak)])
def test_an_index_is_whole_at_every_step_of_its_replacement(events: str, tmp_path: Path) -> None:
    """Killed just before every change of a name, of any file: also where nothing is in place."""
    files = {tree: write_passages(tmp_path / f"{tree}.jsonl", tree, 200) for tree in TREES}
    place, there, nothing_in_place = tmp_path / "place", TREES[0], 0
    options = ("-o", place / "index", "--embedder", "none")
    assert run("index", "build", files[there], *options).returncode == 0
    for at in count(1):
        [wanted] = set(TREES) - {there}
        build = ("index", "build", files[wanted], *options)
        result = signalled(at, "SIGKILL", place, *build, "--overwrite", events=events)
        now = whole_generation(place / "index", 200)
        if result.returncode == 0:
            break
        assert result.returncode == -9, result.stderr
        if not (place / "index").exists():
            nothing_in_place += 1
            assert run("search", place / "index", there, "--embedder", "none", "--json").stdout.count("\n") == 10
            refused = run(*build)
            assert (refused.returncode, "exists already" in refused.stderr) == (2, True)
            assert run(*build, "--overwrite").returncode == 0
            assert names(place) == {"index"}
        elif not events:  # all changes are counted from the same state, else the moment without an index may be missed
            assert run(*build, "--overwrite").returncode == 0
        there = whole_generation(place / "index", 200)
    assert now == wanted
    assert nothing_in_place
    assert at > 3
    assert names(place) == {"index"}


def write_documents(folder: Path, count: int) -> Path:
    """Notes of some paragraphs, among them some that cannot be read."""
    folder.mkdir()
    for number in range(count):
        rows = (f"Plot {number}, row {row}: the birch stands well. It was planted in May. " * 9 for row in range(20))
        (folder / f"plot{number}.txt").write_text("\n\n".join(rows))
        (folder / f"broken{number}.json").write_text("{")
    return folder


def load_documents(cache: Path) -> dict[str, ParsedDocument]:
    """What a cache knows of each file; opening it checks that it is undamaged."""
    for home in cache.glob("documents/*/files.sqlite"):
        with ParseCache(home) as opened:
            return {name: opened.load_file(name) for name in opened.list_files()}
    return {}


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_killed_reading_of_documents_goes_on_and_loses_nothing(kills: int, tmp_path: Path) -> None:
    folder, temporary = write_documents(tmp_path / "notes", 150), tmp_path / "temporary"
    random, killed, kept = Random(kills), 0, dict[str, ParsedDocument]()  # noqa: S311
    temporary.mkdir()
    call = ("chat", "--docs", folder, "-m", "none", "--embedder", "none", "--incognito")

    def settings(cache: str) -> dict[str, Any]:
        return {"CONVAGENT_CACHE": str(tmp_path / cache), "TMPDIR": str(temporary)}

    started = time.perf_counter()
    assert run(*call, **settings("whole")).returncode == 0
    took = time.perf_counter() - started
    whole = load_documents(tmp_path / "whole")
    assert len(whole) == 300
    half_read = 0
    while killed < kills or not half_read:  # a kill may come before anything is read, or after all is
        killed += killed_after(random.uniform(0.3, 1.0) * took, *call, **settings("cache"))
        now = load_documents(tmp_path / "cache")
        assert kept.items() <= now.items(), "what was kept is lost"
        assert now.items() <= whole.items(), "something is there by half"
        half_read += 0 < len(now) < len(whole)
        kept = now
        if len(now) == len(whole):
            shutil.rmtree(tmp_path / "cache")
            kept = {}
    assert run(*call, **settings("cache")).returncode == 0
    assert load_documents(tmp_path / "cache") == whole
    until = time.monotonic() + PATIENCE
    while list(temporary.iterdir()):  # each reading process ends with its program, and clears away after itself
        assert time.monotonic() < until
        time.sleep(0.05)


def contents(index: Path) -> Sequence[bytes]:
    """An index's vectors, as they are on the disk."""
    return [(index / name).read_bytes() for name in (VECTORS_FILE, VECTOR_INFO_FILE)]


def wait_for_blocks(part: Path, blocks: int, process: subprocess.Popen[str]) -> None:
    while not part.exists() or len(msgspec.json.decode(part.read_bytes())["blocks"]) < blocks:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.001)


@needs_embedder
@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_a_killed_embedding_goes_on_to_the_same_bytes(kills: int, tmp_path: Path) -> None:
    """Meanwhile the index has the vectors that it had, whole. Another process is told to wait, Ctrl-C how to go on."""
    index, passages = tmp_path / "place" / "index", 96 if kills < 20 else 480
    corpus = write_passages(tmp_path / "passages.jsonl", "alder", passages)
    assert run("index", "build", corpus, "-o", index, "--embedder", "minilm").returncode == 0
    embed = ("index", "embed", index, "--embedder", "minilm", "--overwrite")
    assert run(*embed, script=IN_SMALL_BLOCKS).returncode == 0
    whole, before = contents(index), names(index)
    random, part = Random(kills), index / PART_INFO_FILE  # noqa: S311
    for number in range(1, kills + 1):
        with start(*embed, script=IN_SMALL_BLOCKS) as process:
            wait_for_blocks(part, max(1, number * (passages // 8 - 2) // kills), process)
            time.sleep(random.uniform(0, 0.05))
            process.kill()
        assert contents(index) == whole, "the old vectors are not what they were"
        with (index / PART_FILE).open("ab") as half:
            half.write(b"half a block")
    with start(*embed, script=IN_SMALL_BLOCKS) as process:
        wait_for_blocks(part, passages // 8 - 1, process)
        process.send_signal(signal.SIGSTOP)  # it holds the index for as long as is needed
        other = run(*embed)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        _, told = process.communicate(timeout=PATIENCE)
    assert (other.returncode, "another process is embedding this index\n  Wait" in other.stderr) == (2, True)
    if process.returncode:  # else it was quicker than Ctrl-C
        assert process.returncode == 130
        assert "passages are embedded and kept; `convagent index embed` goes on after them" in told
        done = run(*embed, script=IN_SMALL_BLOCKS)
        assert (done.returncode, f"of {passages} passages" in done.stderr) == (0, True)
    assert contents(index) == whole
    assert names(index) == before


def kept_turns(data: Path) -> Sequence[ChatTurn]:
    store = Store(data / "convagent.sqlite")
    with closing(sqlite3.connect(data / "convagent.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    chats = store.list_chats()
    return store.read_turns(chats[0].id) if chats else ()


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_every_answer_that_was_shown_is_kept(kills: int, example_index: PassageIndex, tmp_path: Path) -> None:
    def talk(data: Path) -> subprocess.Popen[str]:
        """A chat that is asked all questions at once."""
        options = ("--index", example_index.directory, "--model", "none", "--embedder", "none")
        asked = tmp_path / "questions.txt"
        asked.write_text("\n".join(QUESTIONS) + "\n")
        with asked.open() as questions:
            return start("chat", *options, stdin=questions, CONVAGENT_DATA=str(data))

    with talk(tmp_path / "whole") as process:
        process.communicate(timeout=PATIENCE)
    whole = kept_turns(tmp_path / "whole")
    assert [turn.utterance for turn in whole] == list(QUESTIONS)
    random = Random(kills)  # noqa: S311
    for number in range(kills):
        data = tmp_path / f"killed{number}"
        with talk(data) as process:
            assert process.stdout
            shown = [process.stdout.readline()]  # the first answer has begun
            time.sleep(random.uniform(0, 0.4))
            process.kill()
            shown += process.stdout.readlines()
        kept = kept_turns(data)
        assert [msgspec.json.encode(turn) for turn in kept] == [
            msgspec.json.encode(each) for each in whole[: len(kept)]
        ]
        assert sum(line.startswith("searched for") for line in shown) <= len(kept) + 1  # the last was in the making
        assert names(data) <= {"convagent.sqlite"}
