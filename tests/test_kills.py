"""Killed at any moment: nothing that was finished is lost, nothing is there by half, and nothing is left lying about.

`make soak` runs the long ones.
"""

import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from indexes.documents.parse_cache import ParseCache
from indexes.documents.reading import ParsedDocument
from indexes.passage_index import PassageIndex
from tests.conftest import EXAMPLES, PATIENCE
from tests.processes import TREES, killed_after, names, run, signalled, start, write_passages, write_script

FEW_OR_MANY = [1, pytest.param(20, marks=pytest.mark.soak)]
MADE = {"run.json", "run.trace.jsonl"}


@dataclass(frozen=True, slots=True)
class Task:
    """Topics to be answered into a directory of their own."""

    model: str
    index: Path
    place: Path
    cache: Path

    def call(self, *more: str, name: str = "run.json") -> Sequence[str | Path]:
        (self.place / name).parent.mkdir(exist_ok=True)
        given = (EXAMPLES / "topics.json", "-i", self.index, "-m", self.model, "--embedder", "none", "-k", "50")
        steps = ("--query", "context,hyde,previous")  # every step that a model has
        return ("answer", *given, *steps, "--no-cache", "-o", self.place / name, *more)

    def kill(self, kills: int, shortest: float, longest: float) -> None:
        """Kill and resume until it was killed so often, then finish. What is finished before is begun anew."""
        random, run_file, killed = Random(kills), self.place / "run.json", 0  # noqa: S311
        uninterrupted = self.place / "whole" / "run.json"
        assert run(*self.call(name="whole/run.json"), CONVAGENT_CACHE=str(self.cache)).returncode == 0
        while killed < kills or not run_file.exists():
            seconds = random.uniform(shortest, longest) if killed < kills else 600
            if killed_after(seconds, *self.call("--resume"), CONVAGENT_CACHE=str(self.cache)):
                killed += 1
                continue
            assert run_file.read_bytes() == uninterrupted.read_bytes()
            assert names(self.place) == MADE | {"whole"}
            if killed < kills:
                for name in MADE:
                    (self.place / name).unlink()
        assert not list(self.cache.rglob("*.tmp"))


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_a_killed_run_goes_on_to_the_same_bytes(kills: int, example_index: PassageIndex, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    script = write_script(tmp_path / "script.json")
    task = Task(f"scripted:{script}", example_index.directory, tmp_path / "place", tmp_path / "cache")
    started = time.perf_counter()
    assert run(*task.call()).returncode == 0
    took = time.perf_counter() - started
    for name in MADE:
        (task.place / name).unlink()
    task.kill(kills, 0.3 * took, took)


def whole_generation(index: Path, passages: int) -> str:
    """Which tree's passages an index holds. All of them, and no other's."""
    opened = PassageIndex(index)
    found = {tree: len(opened.search([(tree, 1.0)], passages)) for tree in TREES}
    assert len(opened) == passages
    assert sorted(found.values()) == [0, passages]
    [tree] = (tree for tree in TREES if found[tree])
    for number in range(0, passages, 101):
        [passage] = opened.read([f"p{number}"])
        assert passage.text.startswith(f"The {tree} number {number} ")
    return tree


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_a_killed_build_leaves_the_old_index_or_the_new(kills: int, tmp_path: Path) -> None:
    passages = 20_000 if kills > 3 else 2_000
    files = {tree: write_passages(tmp_path / f"{tree}.jsonl", tree, passages) for tree in TREES}
    place = tmp_path / "place"
    random, killed, there = Random(kills), 0, TREES[0]  # noqa: S311

    def build(tree: str) -> Sequence[str | Path]:
        return ("index", "build", files[tree], "-o", place / "index", "--embedder", "none", "--overwrite")

    started = time.perf_counter()
    assert run(*build(there)).returncode == 0
    took = time.perf_counter() - started
    while killed < kills:
        [wanted] = set(TREES) - {there}
        ended = killed_after(random.uniform(0.4, 1.1) * took, *build(wanted))
        killed += ended
        now = whole_generation(place / "index", passages)
        assert now in (there, wanted)
        assert ended or now == wanted
        there = now
    assert run(*build(there)).returncode == 0
    assert whole_generation(place / "index", passages) == there
    assert names(place) == {"index"}


def write_documents(folder: Path, count: int) -> Path:
    """Notes of some paragraphs, among them some that cannot be read."""
    folder.mkdir()
    for number in range(count):
        paragraphs = [
            f"Plot {number}, row {row}: the birch stands well. It was planted in May. " * 9 for row in range(20)
        ]
        (folder / f"plot{number}.txt").write_text("\n\n".join(paragraphs))
        (folder / f"broken{number}.json").write_text("{")
    return folder


def load_documents(cache: Path) -> dict[str, ParsedDocument]:
    """What a cache knows of each file; opening it checks that it is undamaged."""
    homes = list(cache.glob("documents/*/files.sqlite"))
    if not homes:
        return {}
    with ParseCache(homes[0]) as opened:
        return {name: opened.load_file(name) for name in opened.list_files()}


@pytest.mark.parametrize("kills", FEW_OR_MANY)
def test_killed_reading_of_documents_goes_on_and_loses_nothing(kills: int, tmp_path: Path) -> None:
    folder = write_documents(tmp_path / "notes", 150)
    random, killed, kept = Random(kills), 0, dict[str, ParsedDocument]()  # noqa: S311
    temporary = tmp_path / "temporary"
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


def test_who_is_killed_while_it_ends_its_reader_leaves_no_temporary_file(tmp_path: Path) -> None:
    """Killed just before it clears away for the second time, when the reader cannot do so any more."""
    folder, temporary = write_documents(tmp_path / "notes", 3), tmp_path / "temporary"
    temporary.mkdir()
    fault = {"FAULT_IN": str(temporary), "FAULT_AT": "2", "FAULT_SIGNAL": "SIGKILL", "FAULT_EVENTS": "shutil.rmtree"}
    call = ("chat", "--docs", folder, "-m", "none", "--embedder", "none", "--incognito")
    killed = run(*call, TMPDIR=str(temporary), CONVAGENT_CACHE=str(tmp_path / "cache"), before=None, **fault)
    assert killed.returncode == -9, killed.stderr
    assert names(temporary) == set()


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


@pytest.mark.soak
def test_a_run_survives_a_kill_before_every_change_that_it_makes(example_index: PassageIndex, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    task = Task("none", example_index.directory, tmp_path / "place", tmp_path / "cache")
    assert run(*task.call(name="whole/run.json")).returncode == 0
    for at in count(1):
        result = signalled(at, "SIGKILL", task.place, *task.call("--resume"))
        if result.returncode == 0:
            break
        assert result.returncode == -9, result.stderr
    assert at > 5
    assert (task.place / "run.json").read_bytes() == (task.place / "whole" / "run.json").read_bytes()
    assert names(task.place) == MADE | {"whole"}


def test_two_processes_on_one_trace_are_one_too_many(example_index: PassageIndex, tmp_path: Path) -> None:
    """The second is told so; the first goes on as if nothing were."""
    (tmp_path / "place").mkdir()
    task = Task("none", example_index.directory, tmp_path / "place", tmp_path / "cache")
    trace = task.place / "run.trace.jsonl"
    with start(*task.call()) as first:
        while not (trace.exists() and trace.stat().st_size):
            assert first.poll() is None
            time.sleep(0.001)
        first.send_signal(signal.SIGSTOP)  # SIGSTOP: it holds the trace for as long as is needed
        second = run(*task.call("--resume"))
        first.send_signal(signal.SIGCONT)
        first.communicate(timeout=PATIENCE)
    assert second.returncode == 2
    assert "run.trace.jsonl: another process is writing this trace\n  Wait for it" in second.stderr
    assert first.returncode == 0
    assert names(task.place) == MADE


def test_what_another_process_is_making_is_left_alone(tmp_path: Path) -> None:
    """Leftovers are told from work in hand by who holds them, and other names are nobody's."""
    from indexes.storage.atomic_files import write_file_atomically

    theirs = tmp_path / ".run.json.tmp"
    theirs.write_text("a person's own")
    left = tmp_path / ".run.json.0123abcd.tmp"
    left.write_text("half")

    def write(temporary: Path) -> None:
        temporary.write_text("first")
        write_file_atomically(tmp_path / "run.json", lambda other: other.write_text("second"))
        assert temporary.read_text() == "first"

    write_file_atomically(tmp_path / "run.json", write)
    assert (tmp_path / "run.json").read_text() == "first"
    assert names(tmp_path) == {"run.json", theirs.name}
